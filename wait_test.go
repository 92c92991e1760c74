package weir

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// windows decides as a server does: strict sliding windows, all or nothing. Only
// one exchange at a time uses it.
type windows map[ident.ID][]time.Time // when each token was taken

func (w windows) live(r *wire.Resource) int {
	left := w[r.Bucket]
	for len(left) > 0 && time.Since(left[0]) >= time.Duration(r.Window)*time.Millisecond {
		left = left[1:]
	}
	w[r.Bucket] = left
	return len(left)
}

// take charges a bucket with tokens now.
func (w windows) take(b ident.ID, tokens int) {
	for range tokens {
		w[b] = append(w[b], time.Now())
	}
}

func (w windows) decide(e *exchange) {
	granted := true
	for i := range e.Answer.Deficits {
		r := e.Request.Resource(i)
		over := w.live(&r) + int(r.Tokens) - int(r.Rate)
		e.Answer.Deficits[i] = uint16(min(max(over, 0), int(r.Tokens)))
		granted = granted && over <= 0
	}
	for i := range e.Answer.Deficits {
		r := e.Request.Resource(i)
		if granted {
			w.take(r.Bucket, int(r.Tokens))
		}
		e.Answer.Rates[i] = uint32(w.live(&r))
	}
}

// A bucket that was filled at once is free a window later. One waiter asks soon
// at first, and less and less often: its pauses are 10 ms times 1, 1.5, 2.25, …,
// each by three to five quarters, so that the second is over after 10 or 11 of
// them.
func TestWaitPacesItself(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			c := w.client()
			full := windows{}
			full.take(checkout.ID(), 100)
			w.servers[0].Do(full.decide)
			start := time.Now()
			d, err := c.Wait(context.Background(), oneToken())
			if err != nil || !d.Granted() {
				t.Fatalf("%v, %v", d, err)
			}
			asked, _ := received(w.servers[0])
			took := time.Since(start)
			if asked != 11 && asked != 12 || took < time.Second || took > 1900*time.Millisecond {
				t.Errorf("%d questions, %v", asked, took)
			}
		})
	}
}

// The bucket that lacks most sets the pace. It frees a token each 100 ms, and four
// are missing: 400 ms, give or take a quarter, and then a little more.
func TestWaitForABucketThatFreesInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		ten := Bucket("ten", 10, time.Second)
		free := windows{}
		w.servers[0].Do(free.decide)
		for i := range 10 {
			if i > 0 {
				pass(100 * time.Millisecond)
			}
			if _, err := c.Acquire(context.Background(), Request{Resources: []Resource{ten.Take(1)}}); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := received(w.servers[0])
		start := time.Now()
		d, err := c.Wait(context.Background(), Request{Resources: []Resource{checkout.Take(1), ten.Take(4)}})
		if err != nil || !d.Granted() {
			t.Fatalf("%v, %v", d, err)
		}
		after, _ := received(w.servers[0])
		if asked := after - before; asked > 3 || time.Since(start) < 400*time.Millisecond || time.Since(start) > 1250*time.Millisecond {
			t.Errorf("%d questions, %v", asked, time.Since(start))
		}
	})
}

// A hundred waiters for three tokens each at a hundred a second, of which none is
// free: three seconds are the least.
func TestManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		full := windows{}
		full.take(checkout.ID(), 100)
		w.servers[0].Do(full.decide)
		start := time.Now()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				for range 3 {
					if d, err := c.Wait(context.Background(), oneToken()); err != nil || !d.Granted() {
						t.Errorf("%v, %v", d, err)
					}
				}
			})
		}
		waiting.Wait()
		asked, _ := received(w.servers[0])
		t.Logf("%d questions in %v", asked, time.Since(start))
		if took := time.Since(start); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("300 tokens took %v", took)
		}
		if asked > 300*12 {
			t.Errorf("%d questions for 300 tokens", asked)
		}
	})
}

// Callers that were rejected together do not come again together.
func TestWaitersDoNotAskInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		start := time.Now()
		second := map[time.Duration]bool{}
		var least, most time.Duration = math.MaxInt64, 0
		asked := 0
		w.servers[0].Do(func(e *exchange) {
			if asked++; asked <= 50 {
				e.Answer.Rates[0], e.Answer.Deficits[0] = 100, 100 // all of a second's
				return
			}
			at := time.Since(start)
			second[at] = true
			least, most = min(least, at), max(most, at)
		})
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() {
				if _, err := c.Wait(context.Background(), Request{Resources: []Resource{checkout.Take(100)}}); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		if len(second) < 45 || least < 750*time.Millisecond || most >= 1250*time.Millisecond || least > 900*time.Millisecond || most < 1100*time.Millisecond {
			t.Errorf("%d different instants from %v to %v", len(second), least, most)
		}
	})
}

// The pauses themselves, before chance has its say.
func TestPauses(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	minute := Bucket("minute", 60, time.Minute)
	lacks := func(b RateBucket, tokens int, deficit uint16) ResourceResult {
		return ResourceResult{Resource: b.Take(tokens), ActualRate: uint32(b.Limit()), Deficit: deficit}
	}
	failed := func(ttl time.Duration) GuardResult {
		return GuardResult{Guard: Tracker("x", TrackerOptions{TTL: ttl}).Below(s)}
	}
	noRoom := ResourceResult{Resource: minute.Take(1), Deficit: 1}
	most := Bucket("most", math.MaxUint16, math.MaxUint32*ms)
	for name, tt := range map[string]struct {
		resources []ResourceResult
		guards    []GuardResult
		want      []time.Duration // after 0, 1, … rejections
	}{
		"a token":               {[]ResourceResult{lacks(minute, 5, 1)}, nil, []time.Duration{s, 1500 * ms, 2250 * ms}},
		"30 tokens":             {[]ResourceResult{lacks(minute, 30, 30)}, nil, []time.Duration{30 * s, 45 * s, 60 * s, 60 * s}},
		"all tokens":            {[]ResourceResult{lacks(minute, 60, 60)}, nil, []time.Duration{60 * s, 60 * s}},
		"the slowest":           {[]ResourceResult{lacks(checkout, 1, 1), lacks(minute, 2, 2), lacks(checkout, 1, 0)}, nil, []time.Duration{2 * s}},
		"covered":               {[]ResourceResult{lacks(minute, 60, 0), lacks(checkout, 1, 1)}, nil, []time.Duration{10 * ms}},
		"quick":                 {[]ResourceResult{lacks(Bucket("quick", 1e6, s), 1, 1)}, nil, []time.Duration{ms, 1500 * time.Microsecond}},
		"longest":               {[]ResourceResult{lacks(most, math.MaxUint16, math.MaxUint16)}, nil, []time.Duration{math.MaxUint32 * ms, math.MaxUint32 * ms}},
		"more than was asked":   {[]ResourceResult{lacks(Bucket("one", 1, math.MaxUint32*ms), 1, math.MaxUint16)}, nil, []time.Duration{math.MaxUint32 * ms}},
		"guard":                 {nil, []GuardResult{failed(10 * s)}, []time.Duration{50 * ms, 75 * ms}},
		"guard of short memory": {nil, []GuardResult{failed(80 * ms)}, []time.Duration{10 * ms, 15 * ms}},
		"guard of none":         {nil, []GuardResult{failed(0)}, []time.Duration{ms}},
		"guard for long":        {nil, []GuardResult{failed(10 * s)}, []time.Duration{7: 854296875 * time.Nanosecond, 8: s, 99999: s}},
		"no room":               {[]ResourceResult{noRoom}, nil, []time.Duration{50 * ms, 75 * ms, 99: s}},
		"bucket and guard":      {[]ResourceResult{lacks(minute, 2, 2)}, []GuardResult{failed(10 * s)}, []time.Duration{2 * s}},
		"guard and bucket":      {[]ResourceResult{lacks(checkout, 1, 1)}, []GuardResult{failed(10 * s)}, []time.Duration{50 * ms}},
		"passed":                {[]ResourceResult{lacks(checkout, 1, 1)}, []GuardResult{{Passed: true}}, []time.Duration{10 * ms}},
	} {
		d := Decision{moreResources: tt.resources, moreGuards: tt.guards}
		for before, want := range tt.want {
			if got := pause(&d, before); want != 0 && got != want {
				t.Errorf("%s, after %d rejections: %v, want %v", name, before, got, want)
			}
		}
	}
}

// What can never be granted is not asked. What is merely wrong is refused as
// ever.
func TestWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		three := Bucket("three", 3, time.Second)
		for field, r := range map[string]Request{
			"Resources[1].Tokens":        {Resources: []Resource{checkout.Take(1), checkout.Take(101)}},
			"Resources[2].Tokens":        {Resources: []Resource{three.Take(2), checkout.Take(100), three.Take(2)}},
			"Resources[0].Bucket.Limit":  {Resources: []Resource{Bucket("none", 0, time.Second).Take(1)}},
			"Resources[0].Bucket.Window": {Resources: []Resource{Bucket("none", 1, 0).Take(1)}},
			"Guards[1].Threshold":        {Guards: []Guard{inventory.Below(time.Second), inventory.Below(0)}},
			"Resources[0].Bucket":        {Resources: []Resource{{Tokens: 1}}},
			"Resources[0].Tokens":        {Resources: []Resource{checkout.Take(-1)}},
		} {
			d, err := c.Wait(context.Background(), r)
			var bad *ConfigError
			if !errors.As(err, &bad) || bad.Field != field || d.Granted() {
				t.Errorf("%v, want an error about %s", err, field)
			}
		}
		var bad *ConfigError
		if _, err := c.Wait(context.Background(), Request{Resources: []Resource{Bucket("x", -1, time.Second).Take(1)}}); !errors.As(err, &bad) || bad.Field != "Resources[0].Bucket.Limit" {
			t.Error(err)
		}
		if n, _ := received(w.servers[0]); n != 0 {
			t.Errorf("%d datagrams", n)
		}
		// At the limit, and looking only.
		for _, r := range []Request{
			{},
			{Resources: []Resource{three.Take(3), Bucket("none", 0, time.Second).Take(0), Bucket("none", 0, 0).Take(0)}},
			{Resources: []Resource{three.Take(1), three.Take(2)}},
		} {
			if d, err := c.Wait(context.Background(), r); err != nil || !d.Granted() {
				t.Errorf("%v, %v", d, err)
			}
		}
	})
}

// When the context ends, Wait returns at once, with the last answer.
func TestWaitUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		full := windows{}
		full.take(checkout.ID(), 100)
		w.servers[0].Do(full.decide)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		d, err := c.Wait(ctx, oneToken())
		if took := time.Since(start); took != 500*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, took)
		}
		if d.Granted() || d.Server() != 1000 || d.Resources()[0].Deficit != 1 {
			t.Errorf("%v", d)
		}
		if want := `bucket "checkout": 1 of 1 tokens missing (100 of 100 in 1s)`; !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "weir:") != 1 {
			t.Errorf("%q lacks %q", err, want)
		}
		if _, err := c.Wait(ctx, oneToken()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("over before the first question: %v", err)
		}
		if n := c.Stats().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// The context ends in the middle of the second question.
func TestWaitIsCanceledInAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		ctx, cancel := context.WithCancel(context.Background())
		asked := 0
		w.servers[0].Do(func(e *exchange) {
			e.Answer.Deficits[0] = 1
			e.Answer.Rates[0] = 100
			if asked++; asked == 2 {
				e.Silent = true
				cancel()
			}
		})
		d, err := c.Wait(ctx, oneToken())
		if !errors.Is(err, context.Canceled) || d.Server() != 1000 || !strings.Contains(err.Error(), "tokens missing") {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// An error in the middle is not tried again.
func TestWaitReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		asked := 0
		w.servers[0].Do(func(e *exchange) {
			e.Answer.Rates[0], e.Answer.Deficits[0] = 100, 1
			if e.Repeat == 0 {
				asked++
			}
			e.Silent = asked == 3
		})
		d, err := c.Wait(context.Background(), oneToken())
		if !errors.Is(err, ErrTimeout) || d.Server() != 1000 || d.Granted() || asked != 3 {
			t.Errorf("%v, %v after %d questions", d, err, asked)
		}
		w.silence(0)
		if d, err := c.Wait(context.Background(), oneToken()); !errors.Is(err, ErrTimeout) || d.Server() != 0 {
			t.Errorf("%v, %v", d, err)
		}
	})
}

func TestCloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		w.servers[0].Do(func(e *exchange) { e.Answer.Rates[0], e.Answer.Deficits[0] = 100, 100 })
		time.AfterFunc(300*time.Millisecond, func() { c.Close() })
		start := time.Now()
		d, err := c.Wait(context.Background(), Request{Resources: []Resource{checkout.Take(100)}})
		if took := time.Since(start); !errors.Is(err, ErrClosed) || took != 300*time.Millisecond || d.Server() != 1000 {
			t.Errorf("%v, %v after %v", d, err, took)
		}
		for _, r := range []Request{oneToken(), {}, {Guards: []Guard{{}}}} {
			if _, err := c.Wait(context.Background(), r); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// A guard that failed is asked about after 50 ms, then less often, until it has
// healed.
func TestWaitForAGuardToHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		start := time.Now()
		var asked atomic.Int32
		w.servers[0].Do(func(e *exchange) {
			asked.Add(1)
			if time.Since(start) < 5*time.Second {
				e.Answer.Latencies[0] = 900
			}
		})
		d, err := c.Wait(context.Background(), Request{Guards: []Guard{inventory.Below(100 * time.Millisecond)}})
		if err != nil || !d.Granted() {
			t.Fatalf("%v, %v", d, err)
		}
		// 50 ms times 1, 1.5, …, up to 1 s: the sum of nine of them is below 4 s.
		if n := asked.Load(); n < 10 || n > 14 || time.Since(start) > 6300*time.Millisecond {
			t.Errorf("%d questions in %v", n, time.Since(start))
		}
	})
}
