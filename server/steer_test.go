package server

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// herd is clients of one server, each with a socket, that follow advice to change its port.
type herd struct {
	t       *testing.T
	s       *Server
	stack   udp.Stack
	from    netip.Addr
	client  *client
	conns   []udp.Conn
	asked   int                // answers that advised another port
	lastAsk map[udp.Conn]int64 // ns, of a socket
	in      []udp.Datagram
}

func newHerd(t *testing.T, s *Server, key apikey.Key, stack udp.Stack, from string) *herd {
	h := &herd{
		t: t, s: s, stack: stack, from: netip.MustParseAddr(from), client: newClient(t, key),
		lastAsk: map[udp.Conn]int64{}, in: make([]udp.Datagram, 1),
	}
	h.in[0].Buf = make([]byte, wire.MaxDatagram)
	t.Cleanup(h.close)
	return h
}

func (h *herd) close() {
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

// gather opens sockets until there are so many whose flows come to each worker.
func (h *herd) gather(want ...int) {
	l := h.s.listeners[0]
	for missing := true; missing; {
		c, err := h.stack.Listen(netip.AddrPortFrom(h.from, 0), udp.Options{})
		if err != nil {
			h.t.Fatal(err)
		}
		before := h.received()
		h.ask(c, 1)
		missing = false
		kept := false
		for i, n := range h.received() {
			if n > before[i] && want[i] > 0 {
				want[i]--
				kept = true
			}
			missing = missing || want[i] > 0
		}
		if kept {
			h.conns = append(h.conns, c)
		} else {
			c.Close()
		}
	}
	if len(want) != len(l.workers) {
		h.t.Fatalf("there are %d workers", len(l.workers))
	}
}

func (h *herd) received() (list []uint64) {
	for _, w := range h.s.listeners[0].workers {
		list = append(list, w.received.Load())
	}
	return list
}

// ask sends n requests, then reads their answers, and returns the least of their steering
// feedbacks.
func (h *herd) ask(c udp.Conn, n int) (feedback uint8) {
	for range n {
		h.client.next()
		h.client.header.Timestamp = h.s.settings.Clock.Now().Wall
		b := h.client.request(checkout(0))
		if _, err := c.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: h.s.Addrs()[0]}}); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		h.t.Fatal(err)
	}
	feedback = keepPort
	for range n {
		if _, err := c.Read(h.in); err != nil {
			h.t.Fatal(err)
		}
		if h.client.open(h.in[0].Payload(), wire.Layout2).header.Steering == changePort {
			h.advised(c)
			feedback = changePort
		}
	}
	return feedback
}

func (h *herd) advised(c udp.Conn) {
	now := h.s.settings.Clock.Now().Mono
	if last, ok := h.lastAsk[c]; ok && now-last < int64(time.Second) {
		h.t.Fatalf("a flow is asked %v after it was", time.Duration(now-last))
	}
	h.lastAsk[c] = now
	h.asked++
}

// round has every client ask n questions, and move where it is advised to: the new socket
// is bound before the old one is closed.
func (h *herd) round(n int) {
	for i, c := range h.conns {
		if h.ask(c, n) == keepPort {
			continue
		}
		next, err := udp.ListenNext(h.stack, c.LocalAddr(), udp.Options{})
		if err != nil {
			h.t.Fatal(err)
		}
		h.conns[i] = next
		c.Close()
	}
}

// share is the busiest worker's part of what all received since then, of the mean.
func (h *herd) share(before []uint64) float64 {
	sum, most := uint64(0), uint64(0)
	for i, n := range h.received() {
		sum += n - before[i]
		most = max(most, n-before[i])
	}
	return float64(most) * float64(len(before)) / float64(sum)
}

// metric adds up a metric of the server over its labels.
func metric(t *testing.T, s *Server, name string) (sum float64) {
	t.Helper()
	g, err := newGatherer(s)
	if err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// Over real sockets that share a port: clients that are nearly all at one worker end evenly
// spread, and then none is asked to move. Steps are made when the clients have sent what
// belongs to them, so that no timing plays a part.
func TestSteeringOverLoopback(t *testing.T) {
	const each, quiet = 30, 20 // requests of a client in a step; steps
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	s, err := New(Config{
		Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Listen: []string{"127.0.0.1:0"}, Workers: 2, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	l := s.listeners[0]
	var running sync.WaitGroup
	for _, w := range l.workers {
		running.Go(func() { w.run(context.Background()) })
	}
	t.Cleanup(running.Wait)
	t.Cleanup(s.Close)
	if len(l.workers) < 2 {
		t.Skip("nothing spreads flows here")
	}
	clock.advance(time.Minute)
	h := newHerd(t, s, key, udp.Host(), "127.0.0.1")
	h.gather(32, 4)
	steps, silent := 0, 0
	for ; silent < quiet && steps < 300; steps++ {
		before, asked := h.received(), h.asked
		h.round(each)
		clock.advance(steerEvery)
		l.balance(clock)
		if silent++; h.asked > asked || l.balancer.active.Load() || h.share(before) > 1.2 {
			silent = 0
		}
		if steps == 1 && (metric(t, s, "weir_steering_active") != 1 || h.share(before) < 1.7) {
			t.Errorf("not begun: the busiest worker has %.2f of the mean", h.share(before))
		}
	}
	if silent < quiet {
		t.Errorf("%d steps, and %d flows are still asked or uneven", steps, h.asked)
	}
	if n := metric(t, s, "weir_steering_asked_total"); int(n) != h.asked || h.asked < 10 || h.asked > 100 {
		t.Errorf("%d were asked to move, %v are counted", h.asked, n)
	}
	if metric(t, s, "weir_steering_active") != 0 {
		t.Error("it says that it still evens out")
	}
}

// The same in virtual time, as a server runs.
func TestServerSteers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, off := range []bool{false, true} {
			if now := time.UnixMilli(testTime); time.Now().Before(now) {
				<-time.After(time.Until(now))
			}
			key := newKey(t, apikey.AuthAES, 7)
			network := udp.NewNetwork()
			s, err := New(Config{
				Tenants: []Tenant{{Keys: []apikey.Key{key}, InsecureAuth: true}}, Listen: []string{"10.0.0.1:29292"},
				Stack: network.Host(netip.MustParseAddr("10.0.0.1")), Workers: 2, NoSteering: off,
			})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(t.Context()) }()
			<-time.After(time.Second)
			h := newHerd(t, s, key, network.Host(netip.MustParseAddr("10.0.0.2")), "10.0.0.2")
			h.gather(30, 2)
			second := func() {
				for range 100 {
					h.round(1)
					<-time.After(10 * time.Millisecond)
				}
			}
			for i := 0; i < 8 || i < 60 && metric(t, s, "weir_steering_active") == 1; i++ {
				second()
			}
			before := h.received()
			second()
			if share := h.share(before); off && (h.asked > 0 || share < 1.5) || !off && (h.asked < 10 || share > 1.2) {
				t.Errorf("off: %v; %d were asked to move, the busiest worker has %.2f of the mean", off, h.asked, share)
			}
			h.close()
			s.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// A repeat has the same outcome and its own steering: it is that of its own flow and time.
func TestRepeatHasFreshSteering(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	w.flows = newFlows()
	c := newClient(t, key)
	q := checkout(4)
	q.DedupTTL = 300
	b := c.request(q)
	ask := func() reply { return c.open(w.ask(b), wire.Layout2) }
	w.flows.count(clock.Now().Mono)
	first := ask()
	w.flows.ask(clock.Now().Mono, 1, rand.New(rand.NewPCG(1, 1)))
	elsewhere := c.open(w.askFrom(netip.AddrPortFrom(peer.Addr(), peer.Port()+1), b), wire.Layout2)
	second, third := ask(), ask()
	for i, r := range []reply{first, elsewhere, second, third} {
		if want := []uint8{keepPort, keepPort, changePort, keepPort}[i]; r.header.Steering != want {
			t.Errorf("answer %d has steering %d, want %d", i, r.header.Steering, want)
		}
		if !r.granted() || r.view.Resource(0) != first.view.Resource(0) {
			t.Errorf("answer %d has another outcome: %+v", i, r.view.Resource(0))
		}
	}
	clock.advance(askEvery)
	c.next()
	if r := c.open(w.ask(c.request(q)), wire.Layout2); r.header.Steering != changePort {
		t.Error("a flow that stays is not asked a second later")
	}
}

// What is answered and what is taken in counts for its flow; what is dropped does not.
func TestWhatCountsForAFlow(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	w.flows = newFlows()
	w.flows.count(w.clock.Now().Mono)
	c := newClient(t, key)
	request := c.request(checkout(1))
	c.next()
	report := c.report(observation(5))
	for _, b := range [][]byte{request, request, report, report, request[:50], request[:len(request)-1]} {
		w.ask(b)
	}
	if e := w.flows.find(w.flows.mark(peer)); e == nil || e.load != 3 {
		t.Errorf("a request, its repeat and a report count as %+v", e)
	}
}

// Where there is nothing to balance, and where it is not wanted, there is no balancer.
func TestWhoSteers(t *testing.T) {
	for _, c := range []struct {
		workers int
		off     bool
		want    bool
	}{{1, false, false}, {2, true, false}, {2, false, true}} {
		network := udp.NewNetwork()
		s, err := New(Config{
			Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"10.0.0.1:1", "10.0.0.1:2"},
			Stack: network.Host(netip.MustParseAddr("10.0.0.1")), Workers: c.workers, NoSteering: c.off,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range s.listeners {
			for _, w := range l.workers {
				if (l.balancer != nil) != c.want || (w.flows != nil) != c.want {
					t.Errorf("%d workers, off %v: there is a balancer: %v, flows: %v", c.workers, c.off, l.balancer != nil, w.flows != nil)
				}
			}
		}
		if c.want && s.listeners[0].balancer == s.listeners[1].balancer {
			t.Error("two addresses are balanced as one")
		}
		if metric(t, s, "weir_steering_active") != 0 || metric(t, s, "weir_steering_asked_total") != 0 {
			t.Error("metrics tell of steering")
		}
		s.Close()
	}
}
