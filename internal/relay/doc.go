// Package relay is a network in between: a [Relay] stands before one UDP server and hands
// datagrams on late, loses some, and can be cut, each way by itself. It is how a test gives real
// processes on one machine the network that a scenario of the simulator describes.
package relay
