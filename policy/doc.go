// Package policy describes how an r-client waits for its r-servers: in which
// rounds a request is sent again, how long the oldest server is preferred, and
// when the client gives up.
//
// There is one algorithm and only its numbers differ (docs/policy.md). A request
// starts with transmission round 0 and may be replayed in rounds 1 to N; round k
// lasts B(k) units, and for the first P(k) of them an answer of the oldest server
// is preferred to others. A final interval of F units receives without sending.
// After all of them, at the horizon, the request times out.
//
// A [Policy] is those numbers. [Policy.Compile] checks every rule and limit and
// turns them into a [Timeline] of instants, which is what the client core reads.
//
// This package has no clock. Its values are immutable, comparable (but for
// Timeline) and safe for concurrent use.
package policy
