// Package core is the r-client as a state machine without I/O: it decides what
// to send, which answer counts, when a request is decided and when it is given
// up, and how servers are discovered. It reads no clock, opens no socket and
// starts no goroutine. Time, datagrams, DNS answers and entropy are handed in;
// what it wants done is read out. The same inputs give the same outputs, byte
// for byte, so a test or a simulation replays exactly.
//
//	c, err := core.New(core.Config{Key: key, Entropy: rand.Reader})
//	err = c.SetMembership(now, servers)      // or Config.Domain, and answers to Lookup events
//	id, err := c.Submit(now, &request)       // encodes and seals once; keeps nothing of request
//	for c.PollSend(now, &out) { … }          // datagrams to send, in the caller's buffer
//	c.HandleDatagram(now, socket, datagram)  // what a socket read
//	at, ok := c.Deadline()                   // when to call HandleTimer
//	for c.PollEvent(&event) { … }            // completed, look up, steer
//
// After every call into the core drain PollSend, then PollEvent: completion
// deliveries that the policy does not delay are sent before the decision that they
// belong to is returned. Hand
// in all datagrams that are there before calling HandleTimer.
//
// The rules are those of docs/policy.md (rounds, preference, completion
// delivery) and docs/protocol.md (datagrams, answers, discovery). In short: a
// request is sent to every endpoint of every known server; of the valid answers
// the one from the oldest server is the candidate; the oldest server's own
// answer decides at once, any other when the preference interval of its round
// ends; a round without a candidate is followed by a replay of the same bytes;
// at the horizon the request times out.
//
// A Core is not safe for concurrent use: its owner serializes all calls.
package core
