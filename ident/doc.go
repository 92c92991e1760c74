// Package ident computes the identifiers that r-clients and r-servers agree on
// without talking about them: the content-defined IDs of buckets and latency
// trackers, and the server IDs that order r-servers by age.
//
// A content-defined ID is a hash of a name and of the numbers that define the
// thing named. Two programs that mean the same bucket therefore compute the
// same ID, and a bucket whose limit changed is another bucket. See "IDs" and
// "Server IDs" in docs/protocol.md.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use.
package ident
