// Package reality holds the simulator to what it simulates: scenarios are played twice, once in
// virtual time and once by real servers and clients, as processes on this machine with a relay
// between them that delays, loses and cuts, and what comes out must agree. It is a test and
// nothing else; see docs/evaluator.md, "Simulation against reality".
package reality
