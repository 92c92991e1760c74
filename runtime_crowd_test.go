package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// badNetwork loses, doubles and reorders packets, and knows which questions had
// an answer in time all the same.
type badNetwork struct {
	random *rand.Rand
	lose   float64
	asked  map[wire.UniqueID]time.Time // when a question was first sent
	timely map[wire.UniqueID]bool      // an answer to it reached the client in time
}

// odd is a part of every delay of a bad network, so that nothing arrives at the
// very instant at which a round ends.
const odd = 137 * time.Microsecond

func newBadNetwork(w *world, lose float64) *badNetwork {
	b := &badNetwork{
		random: rand.New(rand.NewPCG(1, 2)), lose: lose,
		asked: map[wire.UniqueID]time.Time{}, timely: map[wire.UniqueID]bool{},
	}
	w.net.SetLink(b.fate)
	return b
}

func (b *badNetwork) fate(p udp.Packet) udp.Fate {
	f := udp.Fate{
		Drop:   b.random.Float64() < b.lose,
		Delay:  time.Duration(b.random.IntN(15))*time.Millisecond + odd,
		Copies: b.random.IntN(10) / 9,
	}
	var e wire.Envelope
	if wire.ParseEnvelope(p.Payload, &e) != nil {
		return f
	}
	id := e.Header.UniqueID
	now := time.Now()
	if p.To.Port() == 29292 {
		if _, known := b.asked[id]; !known {
			b.asked[id] = now
		}
	} else if !f.Drop && now.Add(f.Delay).Sub(b.asked[id]) < 60*time.Millisecond {
		b.timely[id] = true
	}
	return f
}

// 500 callers, two servers, and a network that loses a third of what it is given:
// whoever got an answer in time has a decision, everybody else a timeout.
func TestCrowdOnABadNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		b := newBadNetwork(w, 1.0/3)
		c := w.client()
		const callers, each = 500, 8
		var decided, timedOut atomic.Int64
		var crowd sync.WaitGroup
		for range callers {
			crowd.Go(func() {
				for range each {
					d, err := c.Acquire(context.Background(), oneToken())
					switch {
					case err == nil && d.Granted():
						decided.Add(1)
					case errors.Is(err, ErrTimeout):
						timedOut.Add(1)
					default:
						t.Errorf("%v, %v", d, err)
					}
				}
			})
		}
		crowd.Wait()
		pass(time.Second) // what is under way arrives
		if len(b.asked) != callers*each || decided.Load() != int64(len(b.timely)) || timedOut.Load() == 0 {
			t.Errorf("%d questions, %d answered in time; %d decisions, %d timeouts",
				len(b.asked), len(b.timely), decided.Load(), timedOut.Load())
		}
		if s := c.Stats(); s.InFlight != 0 || s.Kept != 0 || s.Sockets != 1 {
			t.Errorf("left over: %+v", s)
		}
	})
}

// Everything that a client can do, by 500 goroutines at once, on a network that
// is bad in every way: each call ends, as it is documented to.
func TestCrowdDoesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		newBadNetwork(w, 0.1)
		for _, s := range w.servers {
			s.Do(func(e *exchange) { e.Header.Steering = 0 })
		}
		c := w.client(func(cfg *Config) { cfg.MaxInFlight = 300 })
		var results crowdResults
		var crowd sync.WaitGroup
		for i := range 500 {
			random := rand.New(rand.NewPCG(3, uint64(i)))
			crowd.Go(func() {
				for range 20 {
					results.doSomething(t, c, random)
				}
			})
		}
		crowd.Wait()
		pass(time.Second)
		s := c.Stats()
		var completed uint64
		for _, n := range s.Outcomes {
			completed += n
		}
		// A request ends once: by a completion, or because its caller has gone.
		if completed+s.Canceled != s.Submitted || s.InFlight != 0 {
			t.Errorf("%d submitted, %d completed, %d canceled, %d in flight", s.Submitted, completed, s.Canceled, s.InFlight)
		}
		if got := results.decided.Load(); uint64(got) != s.Outcomes[core.Granted] {
			t.Errorf("%d decisions returned, %d made", got, s.Outcomes[core.Granted])
		}
		if got := results.timedOut.Load(); uint64(got) != s.Outcomes[core.TimedOut] {
			t.Errorf("%d timeouts returned, %d made", got, s.Outcomes[core.TimedOut])
		}
		if n := results.canceled.Load(); uint64(n) < s.Canceled || n == 0 {
			t.Errorf("%d contexts ended, %d requests were canceled", n, s.Canceled)
		}
		if results.refused.Load() == 0 {
			t.Error("300 in flight were enough for 500")
		}
		if s.Sockets != 1 || len(w.host.Ports()) != 1 || s.LostReports != 0 {
			t.Errorf("%d sockets, open %v; %d reports lost", s.Sockets, w.host.Ports(), s.LostReports)
		}
	})
}

// crowdResults is how the calls of a crowd ended.
type crowdResults struct{ decided, timedOut, canceled, refused atomic.Int64 }

func (r *crowdResults) doSomething(t *testing.T, c *Client, random *rand.Rand) {
	ctx := context.Background()
	if random.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(70))*time.Millisecond)
		defer cancel()
	}
	switch random.IntN(6) {
	case 0, 1:
		_, err := c.Acquire(ctx, oneToken())
		r.note(t, err)
	case 2, 3:
		ran := false
		d, err := c.Do(ctx, Admission{Request: guarded()}, func(context.Context) error {
			ran = true
			pass(time.Millisecond)
			return nil
		})
		if ran != d.Granted() || ran != (err == nil) {
			t.Errorf("work ran: %v; %v, %v", ran, d, err)
		}
		r.note(t, err)
	case 4:
		if err := c.Report(inventory.Took(time.Millisecond)); err != nil {
			t.Errorf("Report: %v", err)
		}
	case 5:
		if n := len(c.Servers()); n != 2 {
			t.Errorf("%d servers", n)
		}
		c.Stats()
	}
}

func (r *crowdResults) note(t *testing.T, err error) {
	switch {
	case err == nil:
		r.decided.Add(1)
	case errors.Is(err, ErrTimeout):
		r.timedOut.Add(1)
	case errors.Is(err, context.DeadlineExceeded):
		r.canceled.Add(1)
	case errors.Is(err, ErrTooManyInFlight):
		r.refused.Add(1)
	default:
		t.Errorf("%v", err)
	}
}
