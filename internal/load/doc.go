// Package load asks r-servers as fast, or as often, as it is told, and judges every answer. It is
// what weir bench does, and what the comparisons under bench/ measure with.
//
// A closed loop keeps a number of requests in flight: whenever one is answered the next leaves. It
// shows the most that a server does. An open loop sends at a rate, with exponential intervals, whether
// answers come or not, and a latency counts from the instant at which its request was due: so a stall
// is seen by all that were to be sent meanwhile. It shows what clients of a server would see.
//
// Requests leave from many sockets, each a flow with a source port of its own, in batches of what is
// due and never later for the sake of a batch. A request that has no answer after the timeout is lost,
// and takes its place among the latencies as one that took that long.
package load
