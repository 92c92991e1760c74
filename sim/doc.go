// Package sim is the evaluator: a discrete-event simulation, in virtual time, of r-clients,
// r-servers, the network between them, DNS, and the work that is protected. It runs the
// product's own client core (package core) and decision engine (package limiter), no models
// of them, so what it shows is what they do.
//
// A [Scenario] says what there is and what goes wrong, a seed decides what is left to chance.
// The same scenario and seed give the same [Record]s in the same order on every machine:
// there is no clock, no goroutine and no floating-point number in the way of an event.
// [Run] plays one to its end, [New] and [World.Step] an event at a time; a [Recorder] hears
// what happens, such as a [Log], a [Digest] or a Measurer. docs/evaluator.md describes the models
// and defines the measures.
package sim
