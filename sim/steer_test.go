package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// TestFlows: a client's socket belongs to one worker, and many clients to all of them.
func TestFlows(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Servers[0].Workers = 4
		s.Clients[0].Count = 400
		s.Clients[0].Arrivals.Every = ms(500)
	})
	worker := map[int]int{}
	var clients [4]int
	for _, r := range play(t, s, 1).of(RecordArrive) {
		if r.Server != 0 {
			continue
		}
		if w, ok := worker[r.Client]; ok && w != r.Worker {
			t.Fatalf("client %d has worker %d and %d", r.Client, w, r.Worker)
		} else if !ok {
			clients[r.Worker]++
		}
		worker[r.Client] = r.Worker
	}
	for w, n := range clients {
		if !near(n, 400, 0.25) {
			t.Errorf("worker %d has %d of 400 clients", w, n)
		}
	}
}

// TestSteering: a worker whose queue is much longer than others sends clients away, who take
// another port; their old socket drains, and is then closed.
func TestSteering(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Length = 4 * time.Second
		s.Servers = []Server{{Name: "A", Age: time.Second, Workers: 4, Steering: true, Service: Constant(us(500))}}
		s.Clients[0].Count = 6
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveBurst, Size: 10, Every: ms(20)}
		s.Policy = oneRound()
		s.Links[0].Delay = Uniform(0, ms(1)) // some answers are still on their way when others steer
	})
	got := play(t, s, 1)
	ports := map[int]netip.AddrPort{}
	steers := 0
	lastSteer := map[int]time.Duration{}
	open := map[int]map[netip.AddrPort]int{} // undecided requests by the port that they were sent from
	from := map[uint64]netip.AddrPort{}
	advised := map[int]bool{}
	for i := range got {
		r := &got[i]
		switch r.Kind {
		case RecordSend:
			if old, ok := ports[r.Client]; ok && old != r.Port {
				t.Fatalf("%v: client %d sends from %v, and nobody said so", r.At, r.Client, r.Port)
			}
			ports[r.Client] = r.Port
			if open[r.Client] == nil {
				open[r.Client] = map[netip.AddrPort]int{}
			}
			open[r.Client][r.Port]++
			from[r.Request] = r.Port
		case RecordResponse:
			advised[r.Client] = advised[r.Client] || !r.Keep
			if r.Received == core.DatagramCounted && r.Port != from[r.Request] {
				t.Errorf("%v: an answer comes in at %v, for a request from %v", r.At, r.Port, from[r.Request])
			}
		case RecordSteer:
			if !advised[r.Client] {
				t.Errorf("%v: client %d takes another port unasked", r.At, r.Client)
			}
			if last, ok := lastSteer[r.Client]; ok && r.At-last < time.Second {
				t.Errorf("client %d steers at %v and %v", r.Client, last, r.At)
			}
			lastSteer[r.Client] = r.At
			old := ports[r.Client].Port()
			want := old + 1
			if old < steeringFirst || old == steeringLast {
				want = steeringFirst
			}
			if r.Port.Port() != want {
				t.Errorf("%v: from port %d to %d", r.At, old, r.Port.Port())
			}
			ports[r.Client] = r.Port
			steers++
		}
	}
	if steers < 3 {
		t.Errorf("%d steers", steers)
	}
	if lost := got.count(RecordLost, func(*Record) bool { return true }); lost > 0 {
		t.Errorf("%d datagrams were lost to steering", lost)
	}
	s.Servers[0].Steering = false
	quiet := play(t, s, 1)
	if n := len(quiet.of(RecordSteer)) + quiet.count(RecordResponse, func(r *Record) bool { return !r.Keep }); n > 0 {
		t.Errorf("without steering there are %d pieces of advice and ports taken", n)
	}
}

// TestSocketCloses: an answer that comes when its request has ended and its socket was replaced
// finds nobody.
func TestSocketCloses(t *testing.T) {
	w, err := New(small(nil), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for w.now < ms(100) || len(w.clients[0].pending) == 0 {
		w.Step()
	}
	c := &w.clients[0]
	old := c.sockets[0]
	w.rebind(c, old.id)
	if len(c.sockets) != 2 || old.uses != 1 || c.socketAt(old.port) != old {
		t.Fatalf("with a request that was sent from it the old socket is closed: %v", c.sockets)
	}
	for len(c.pending) > 0 {
		w.Step()
	}
	if len(c.sockets) != 1 || c.socketAt(old.port) != nil {
		t.Errorf("without any request there are %d sockets", len(c.sockets))
	}
	lost := w.counts.Lost
	d := w.pool.get()
	d.answer, d.port = true, old.port
	w.live++
	w.arriveAtClient(d)
	if w.counts.Lost != lost+1 {
		t.Error("an answer came in at a closed socket")
	}
}
