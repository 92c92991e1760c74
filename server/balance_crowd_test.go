package server

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A step of a crowd is made of so many slices, in each of which every client sends some of
// its datagrams.
const (
	perStep  = 10
	sliceLen = steerEvery / perStep
)

// crowd is a server's workers, as flow tables alone, and clients whose flows a hash spreads
// over them. Its time is its own.
type crowd struct {
	t       *testing.T
	b       *balancer
	totals  []uint64
	random  *rand.Rand
	noisy   bool // datagrams come by chance, and else as regularly as they can
	now     time.Duration
	slice   int
	clients []*simClient

	asked   int // answers that asked for another port
	silent  int // steps since the last of them
	lastAsk map[uint64]time.Duration
}

// simClient has one flow at a time.
type simClient struct {
	load   float64 // datagrams a step, on average
	owed   float64 // part of a datagram that it has not sent yet
	delay  int     // slices until it moves when it is asked; 0 is with its next datagram
	deaf   bool    // it never moves
	mute   bool    // it only sends what has no answer
	mark   uint64
	worker int
	asked  int
	moves  int // the slice in which it moves, 0 if it does not
}

func newCrowd(t *testing.T, workers int, seed uint64) *crowd {
	c := &crowd{t: t, totals: make([]uint64, workers), random: rand.New(rand.NewPCG(seed, 1)), lastAsk: map[uint64]time.Duration{}}
	list := make([]*flows, workers)
	for i := range list {
		list[i] = newFlows()
	}
	c.b = newBalancer(list, rand.New(rand.NewPCG(seed, 2)))
	return c
}

// add adds clients of these loads. They are at one worker, or where the hash has them if
// that is negative.
func (c *crowd) add(worker int, loads ...float64) []*simClient {
	first := len(c.clients)
	for _, load := range loads {
		s := &simClient{load: load}
		c.place(s)
		if worker >= 0 {
			s.worker = worker
		}
		c.clients = append(c.clients, s)
	}
	return c.clients[first:]
}

// place gives a client another port, and so a flow that the hash takes anywhere.
func (c *crowd) place(s *simClient) {
	s.mark, s.worker, s.moves = c.random.Uint64(), c.random.IntN(len(c.totals)), 0
}

func (c *crowd) step() {
	before := c.asked
	for range perStep {
		c.slice++
		for _, s := range c.clients {
			if s.moves == c.slice {
				c.place(s)
			}
			n := c.due(s)
			if c.b.workers[s.worker].duty.Load() == dutyNone {
				c.totals[s.worker] += uint64(n)
				continue
			}
			for range n {
				c.send(s)
			}
		}
		c.now += sliceLen
	}
	c.b.step(int64(c.now), c.totals)
	if c.silent++; c.asked > before {
		c.silent = 0
	}
}

// due is how many datagrams a client sends in this slice.
func (c *crowd) due(s *simClient) (n int) {
	if !c.noisy {
		s.owed += s.load / perStep
		n = int(s.owed)
		s.owed -= float64(n)
		return n
	}
	for at := c.random.ExpFloat64(); at < s.load/perStep; at += c.random.ExpFloat64() {
		n++
	}
	return n
}

func (c *crowd) steps(n int) {
	for range n {
		c.step()
	}
}

func (c *crowd) send(s *simClient) {
	c.totals[s.worker]++
	w := c.b.workers[s.worker]
	if s.mute || w.answer(int64(c.now), s.mark) == keepPort {
		return
	}
	if last, ok := c.lastAsk[s.mark]; ok && c.now-last < time.Second {
		c.t.Fatalf("a flow is asked %v after it was", c.now-last)
	}
	c.lastAsk[s.mark] = c.now
	s.asked++
	c.asked++
	switch {
	case s.deaf || s.moves > 0:
	case s.delay == 0:
		c.place(s)
	default:
		s.moves = c.slice + s.delay
	}
}

// share is the busiest worker's share, as the clients' loads have it on average.
func (c *crowd) share() float64 {
	loads := make([]float64, len(c.totals))
	sum, most := 0.0, 0.0
	for _, s := range c.clients {
		loads[s.worker] += s.load
		sum += s.load
		most = max(most, loads[s.worker])
	}
	return most * float64(len(loads)) / sum
}

// possible is the least share that the busiest worker can have.
func (c *crowd) possible() float64 {
	sum, most := 0.0, 0.0
	for _, s := range c.clients {
		sum += s.load
		most = max(most, s.load)
	}
	return max(1, most*float64(len(c.totals))/sum)
}

// even and zipf are the loads of n clients that together send so many datagrams a step.
func even(n int, sum float64) []float64 {
	loads := make([]float64, n)
	for i := range loads {
		loads[i] = sum / float64(n)
	}
	return loads
}

func zipf(n int, sum float64) []float64 {
	loads := make([]float64, n)
	harmonic := 0.0
	for i := range loads {
		harmonic += 1 / float64(i+1)
	}
	for i := range loads {
		loads[i] = sum / harmonic / float64(i+1)
	}
	return loads
}
