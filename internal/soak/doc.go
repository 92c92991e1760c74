// Package soak holds the client to its promise over real processes and sockets:
// while r-servers are killed and restarted one after the other, no question of
// many callers goes without a decision. It is a test and nothing else; see
// docs/operations.md, "A soak test".
package soak
