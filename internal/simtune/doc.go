// Package simtune searches for the request policy that suits a network. It plays candidates over
// scenarios in health and with faults, walks over a grid of policies to better ones, and has what it
// found confirmed by seeds that took no part in finding it. docs/tuning.md tells what is weighed, and
// why.
//
// [Search] is a function of its [Plan] and of what the [Player] says: it has no clock, no randomness
// and no goroutine. [Scenarios.Play] is the player that runs the simulator, on all processors.
package simtune
