// Package wire reads and writes the datagrams that r-clients and r-servers exchange: resource
// requests, their responses, and latency reports, in both layouts and all three authentication
// modes. docs/protocol.md describes the format.
//
// A datagram is a tenant header, an authentication TLV and a PDU. Reading one goes in three steps,
// because a server learns from the header whose key to use:
//
//	err := wire.ParseEnvelope(datagram, &env)      // header, authentication frame
//	pdu, err := credential.Open(&env, &scratch)    // authenticate, decrypt
//	err = wire.ParseRequest(pdu, &view)            // or ParseReport, ParseResponse; PDUKind tells
//
// [RequestView], [ResponseView] and [ReportView] are views: they point into the bytes that were
// given, copy nothing, and are valid as long as those bytes are unchanged. Writing goes in one step:
// AppendRequest, AppendReport and AppendResponse of [Credential] append a whole sealed datagram.
//
// The parsers take any bytes, never panic and do work in proportion to the datagram, at most 1200
// bytes. Neither reading nor writing allocates, refusals included, given a buffer of [BufferSize].
// What cannot be read is an error of class [ErrMalformed], [ErrMode] or [ErrAuth].
//
// Nothing in a request names its layout; [ParseRequest] infers it from the lengths. A response is
// read in its request's layout. Whether a response answers the question, whether a timestamp is
// fresh and whether a quota holds are questions for the packages above.
//
// A [Credential] is safe for concurrent use. A [Sealer], a [Scratch] and a view belong to one
// goroutine at a time. The package has no clock, no global randomness and no I/O.
package wire
