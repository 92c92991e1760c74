// Package runner plays the traces of package conformance: against this module's
// core in virtual time ([PlayCore]), and against any client as a child process in
// real time ([Run]), with scripted r-servers and a scripted DNS on loopback.
//
// A play in real time stretches a trace, so that what the policy does lies further
// apart than machines are late, and judges what came over the wire and what the
// client said about it. It measures how late the machine was, so that a slow machine
// does not fail a right client: what failed is played again, and what fails while
// the machine is late is inconclusive.
package runner
