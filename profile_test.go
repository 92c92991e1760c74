package weir

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/wire"
)

// Three decisions: by the oldest server at once; by a fallback, after a replay, in
// the final interval; by nobody.
func TestProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		c := w.client()
		w.silence(1, 2)
		acquireProfile(t, c, Profile{Server: 1000, Oldest: true, KeepPort: true, Servers: 3, Answered: 1})
		w.silence(0, 1)
		w.servers[2].Do(func(e *exchange) {
			e.Delay = 45 * time.Millisecond
			e.Silent = e.Repeat > 0
			e.Header.Steering = 0
		})
		acquireProfile(t, c, Profile{
			Server: 3000, Round: 2, Final: true, Elapsed: 45 * time.Millisecond, Servers: 3, Answered: 1, Replays: 1,
		})
		d, err := c.Acquire(context.Background(), Request{})
		if want := (Profile{KeepPort: true}); err != nil || d.Profile() != want {
			t.Errorf("the request for nothing: %+v, %v", d.Profile(), err)
		}
		want := core.Decided{InFinal: 1, ByOldest: 1, ByFallback: 1}
		want.InRound[0] = 1
		if got := c.Stats().Decided; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func acquireProfile(t *testing.T, c *Client, want Profile) {
	t.Helper()
	d := acquire(t, c)
	if got := d.Profile(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if d.Server() != want.Server || d.Round() != want.Round || d.Elapsed() != want.Elapsed {
		t.Errorf("the decision itself says %v", d)
	}
}

// The profile counts the answers that had counted, not those that come later.
func TestProfileCountsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		c := w.client()
		for i, s := range w.servers {
			s.Do(func(e *exchange) {
				e.Delay = time.Duration([]int{15, 5, 18}[i]) * time.Millisecond
				e.Answer = wire.Answer{Rates: []uint32{0}, Deficits: []uint16{1}}
			})
		}
		d, err := c.Acquire(context.Background(), oneToken())
		want := Profile{Server: 1000, Oldest: true, Elapsed: 15 * time.Millisecond, KeepPort: true, Servers: 3, Answered: 2}
		if err != nil || d.Granted() || d.Profile() != want {
			t.Errorf("%+v, %v; want %+v", d.Profile(), err, want)
		}
		pass(100 * time.Millisecond)
	})
}
