// Package limiter is the decision engine of an r-server: it grants or rejects resource requests,
// takes in latency reports, and answers repeats as it answered the first time. docs/server.md,
// "Engine", describes its rules.
//
// An [Engine] holds the state of one tenant and nothing else: no clock, no goroutine, no lock, no
// I/O. Time is handed in with every call, so the same calls give the same decisions:
//
//	e, err := limiter.New(limiter.Config{RateBuckets: 65536, …, Seed: secret, Start: now.Wall})
//	v := e.Decide(now, &header, &request, &answer) // request: a *wire.RequestView
//	if !v.Dropped() {
//		// send answer
//	}
//
// Buckets are strict sliding windows: in no half-open interval of a window's length are more tokens
// granted than the limit. Latency trackers estimate from the last observations. A request is
// decided as a whole: every guard passes and every token is consumed, or nothing is.
//
// The cost of a decision does not grow with the number of buckets, trackers or identities. Expired
// state is taken back in small steps by the calls that pass it; tables grow a page at a time; and a
// decision about known state allocates nothing. [Config.WorstCase] is what an engine can grow to.
//
// An Engine is not safe for concurrent use.
package limiter
