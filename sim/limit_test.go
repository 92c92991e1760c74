package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
)

// TestStrictWindows: the engines behind are the real ones. Each grants all of its limit and never
// more in any window, whatever is lost, doubled or late.
func TestStrictWindows(t *testing.T) {
	const limit, window = 20, 100 * time.Millisecond
	s := small(func(s *Scenario) {
		s.Length = 3 * time.Second
		s.Buckets[0] = Bucket{Name: "b", Limit: limit, Window: window, Count: 2}
		s.Clients[0].Count = 5
		s.Clients[0].Arrivals = Arrivals{Kind: ArrivePoisson, Every: ms(5)}
		s.Links[0] = Link{From: "*", To: "*", Delay: Lognormal(ms(2), ms(15)), Loss: 20_000, Duplicate: 20_000}
		s.Servers[1].Service = Exponential(us(500))
	})
	taken := map[string][]time.Duration{}
	full := 0
	for _, r := range play(t, s, 1).of(RecordServe) {
		if r.Verdict != limiter.Granted {
			continue
		}
		var id ident.ID
		for _, b := range resources(t, r.Payload) {
			id = b.Bucket
		}
		k := fmt.Sprint(r.Server, id)
		taken[k] = append(taken[k], r.At)
		if n := len(taken[k]); n > limit && r.At-taken[k][n-limit-1] < window {
			t.Errorf("%v: server %d grants %d in less than a window", r.At, r.Server, limit+1)
		} else if n > limit && r.At-taken[k][n-limit-1] < window+ms(10) {
			full++
		}
	}
	if len(taken) != 4 || full < 100 {
		t.Errorf("%d buckets, of which %d windows were full", len(taken), full)
	}
}
