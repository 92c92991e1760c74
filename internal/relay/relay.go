package relay

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/sim"
)

// A Way says how datagrams fare in one direction. The zero value hands on all of them at once.
type Way struct {
	Delay sim.Dist
	Loss  sim.PerMillion // of each datagram
}

// Config is what a relay is made of.
type Config struct {
	Stack  udp.Stack      // nil is this machine's
	Front  netip.AddrPort // where clients come in; port 0 is any
	Target netip.AddrPort // the server
	Up     Way            // from clients to the server
	Down   Way            // back
	Seed   uint64         // of losses and delays
	// Sleep waits for the last two milliseconds or less before a datagram is due. nil is
	// time.Sleep, which on a real machine may be a millisecond late; precise.Sleep is not.
	Sleep func(time.Duration)
}

// A Relay stands before one server. To the server each of the relay's clients is a flow of its own:
// it has a socket for every address and port that a datagram came from, so a client that changes
// its port is another flow there, too. Datagrams whose delays differ overtake each other.
// Make one with [Start]. Its methods are safe for concurrent use.
type Relay struct {
	stack udp.Stack
	sleep func(time.Duration)
	front udp.Conn
	back  netip.Addr // what sockets towards the server are bound to
	wake  chan struct{}
	done  chan struct{}
	tasks sync.WaitGroup

	mu     sync.Mutex
	target netip.AddrPort
	ways   [2]way
	flows  map[netip.AddrPort]udp.Conn
	closed bool
	queue  queue
	turn   uint64
	late   sim.Histogram
	stats  Stats
}

// direction is an index of what there is for each way.
type direction int

const (
	up direction = iota
	down
)

// way is one as it is now.
type way struct {
	Way
	cut   bool
	draws *rand.PCG
}

// Stats counts datagrams.
type Stats struct {
	Up, Down Count
	// LateP99 is the 99th percentile of how much later than they were due datagrams left.
	LateP99 time.Duration
	// TooLate counts those that left more than [TooLate] later.
	TooLate uint64
}

// TooLate is how much later than it was due a datagram leaves only if the machine had no processor
// for it.
const TooLate = 2 * time.Millisecond

// Count counts the datagrams of one way, each in one of the fields.
type Count struct {
	Sent   uint64 // handed on
	Lost   uint64 // by the chance of the way
	Cut    uint64 // that came while the way was cut
	Unsent uint64 // that the system did not take, or for whose flow there was no socket
}

// maxFlows bounds the sockets of a relay. None is given back before the end.
const maxFlows = 1024

// readBuffer is what the kernel holds for the relay, in bytes, of each socket.
const readBuffer = 1 << 20

// Start binds the front and begins to hand on. The error is the system's, or says that a
// distribution is wrong. End it with [Relay.Close].
func Start(c Config) (*Relay, error) {
	if c.Stack == nil {
		c.Stack = udp.Host()
	}
	if c.Sleep == nil {
		c.Sleep = time.Sleep
	}
	for _, w := range []Way{c.Up, c.Down} {
		if err := w.Delay.Validate(); err != nil {
			return nil, fmt.Errorf("relay: %w", err)
		}
	}
	front, err := c.Stack.Listen(c.Front, udp.Options{Received: true, ReadBuffer: readBuffer})
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{
		stack: c.Stack, sleep: c.Sleep, front: front, back: c.Front.Addr(),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		target: c.Target, flows: map[netip.AddrPort]udp.Conn{},
		ways: [2]way{
			up:   {Way: c.Up, draws: rand.NewPCG(c.Seed, uint64(up))},
			down: {Way: c.Down, draws: rand.NewPCG(c.Seed, uint64(down))},
		},
	}
	r.tasks.Go(r.readFront)
	r.tasks.Go(r.handOn)
	return r, nil
}

// Addr returns where clients come in.
func (r *Relay) Addr() netip.AddrPort { return r.front.LocalAddr() }

// SetTarget names the server that later datagrams go to, such as one that was started again
// elsewhere. Those under way go where the server was.
func (r *Relay) SetTarget(target netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// SetWays changes how later datagrams fare.
func (r *Relay) SetWays(u, d Way) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ways[up].Way, r.ways[down].Way = u, d
}

// Cut says which ways lose every datagram that comes from now on. Those under way arrive.
func (r *Relay) Cut(u, d bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ways[up].cut, r.ways[down].cut = u, d
}

// Stats returns what was counted.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.LateP99 = time.Duration(r.late.Quantile(990_000))
	return s
}

// Close ends the relay, with what is under way. It returns when nothing of it is left, and is
// idempotent.
func (r *Relay) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.done)
		_ = r.front.Close()
		for _, c := range r.flows {
			_ = c.Close()
		}
	}
	r.mu.Unlock()
	r.tasks.Wait()
}
