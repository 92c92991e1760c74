// Package conformance is what the author of a client in any language proves it
// with: policies with their timelines, traces of what a client does as an observer
// outside sees it, and the lines in which a runner talks to a client under test.
//
// The data lies in data, as JSON that README.md documents; [Traces] and [Policies]
// read the copy that is compiled in. Package runner plays them against this
// module's core in virtual time, and against any client as a child process.
//
// Everything here is a value; its functions are safe for concurrent use.
package conformance
