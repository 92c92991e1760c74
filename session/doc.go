// Package session is the client as explicit state: a value goes into every call
// and the next one comes out, on success and on failure.
//
//	s, err := session.New(session.Config{Zone: "rl.example.com"})
//	s, d, err := session.Execute(ctx, s, key, weir.Request{Resources: …})
//	s, err = session.Report(s, key, tracker.Took(elapsed))
//	s, err = session.Close(s)
//
// Requests, decisions and errors are those of package weir, and the decisions are
// made by the same core, so they are the same ones; only the I/O around it is
// another. Calls are synchronous, one at a time, and nothing runs between them:
// when a call returns, no goroutine and no timer of it is left. What is kept from
// call to call are the sockets, with the port that servers advised, and the
// servers that DNS named, for as long as it said.
//
// It is for hosts that do one thing after another: scripts, single-threaded
// hosts, supervised processes. Everything else is better off with weir.Client,
// which is safe for any number of goroutines and refreshes in the background
// what it knows. docs/session.md helps to choose.
package session
