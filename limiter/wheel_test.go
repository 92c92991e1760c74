package limiter

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// wheelRig is a wheel, the records of a pool, and what the wheel does not know: their ticks.
type wheelRig struct {
	w     wheel
	pool  pool[struct{}]
	ticks map[uint32]uint64
}

func (r *wheelRig) add(tick uint64) uint32 {
	i := r.pool.take()
	r.w.add(r.pool.links, i, tick)
	r.ticks[i] = tick
	return i
}

// next takes out the first record of all whose tick is before a limit, as the wheel's owners do.
func (r *wheelRig) next(before uint64) (i uint32, ok bool) {
	for {
		i, ok := r.w.pop(r.pool.links, before)
		if !ok || r.ticks[i] <= r.w.now {
			return i, ok
		}
		r.w.add(r.pool.links, i, r.ticks[i])
	}
}

func (r *wheelRig) drop(i uint32) {
	delete(r.ticks, i)
	r.pool.give(i)
}

// earliest returns the smallest tick.
func (r *wheelRig) earliest() uint64 {
	first := uint64(math.MaxUint64)
	for _, t := range r.ticks {
		first = min(first, t)
	}
	return first
}

// TestWheel pops records in the order of their ticks, and none too early or too late, against a
// plain search.
func TestWheel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &wheelRig{ticks: map[uint32]uint64{}}
		far := rapid.Uint64Range(1, 1<<rapid.IntRange(1, 44).Draw(t, "bits")).Draw(t, "far")
		now := rapid.Uint64Range(0, 1<<44).Draw(t, "now")
		r.w.rest(now)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "adds") {
				r.add(now + rapid.Uint64Range(0, far).Draw(t, "delay"))
			}
			now += rapid.Uint64Range(0, far).Draw(t, "passed")
			for {
				first := r.earliest()
				i, ok := r.next(now)
				if !ok {
					if first < now {
						t.Fatalf("at %d nothing is popped, but tick %d has passed", now, first)
					}
					break
				}
				if r.ticks[i] != first || first >= now {
					t.Fatalf("at %d a record of tick %d is popped; the first is of %d", now, r.ticks[i], first)
				}
				r.drop(i)
			}
			r.w.rest(now)
		}
		if r.w.waiting != len(r.ticks) {
			t.Fatalf("%d wait, want %d", r.w.waiting, len(r.ticks))
		}
	})
}

// TestWheelFirst takes the first of all whatever the time.
func TestWheelFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &wheelRig{ticks: map[uint32]uint64{}}
		r.w.rest(rapid.Uint64Range(0, 1<<40).Draw(t, "start"))
		floor := r.w.now
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") || len(r.ticks) == 0 {
				r.add(floor + rapid.Uint64Range(0, 100_000).Draw(t, "delay"))
				continue
			}
			first := r.earliest()
			i, ok := r.next(math.MaxUint64)
			if !ok || r.ticks[i] != first {
				t.Fatalf("popped tick %d, want %d", r.ticks[i], first)
			}
			floor = first
			r.drop(i)
		}
	})
}

// TestWheelPast lets a record whose tick has passed wait for the current one, and a tick beyond the
// last for the last.
func TestWheelPast(t *testing.T) {
	r := &wheelRig{ticks: map[uint32]uint64{}}
	r.w.rest(1000)
	late := r.add(5)
	end := r.add(math.MaxUint64)
	if _, ok := r.w.pop(r.pool.links, 1000); ok {
		t.Error("a record was popped before the current tick")
	}
	if i, ok := r.w.pop(r.pool.links, 1001); !ok || i != late {
		t.Errorf("popped %d, want %d", i, late)
	}
	r.ticks[end] = wheelEnd
	if i, ok := r.next(math.MaxUint64); !ok || i != end {
		t.Errorf("popped %d, want %d", i, end)
	}
}

// TestWheelFair pops records of one slot in the order in which they came.
func TestWheelFair(t *testing.T) {
	r := &wheelRig{ticks: map[uint32]uint64{}}
	var want, got []uint32
	for range 100 {
		want = append(want, r.add(7))
	}
	for {
		i, ok := r.next(8)
		if !ok {
			break
		}
		got = append(got, i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("popped %v, want %v", got, want)
	}
}

func BenchmarkWheel(b *testing.B) {
	var w wheel
	var p pool[struct{}]
	const n = 1 << 16
	ticks := make([]uint64, n+1)
	for range n {
		i := p.take()
		ticks[i] = uint64(i) % 5000
		w.add(p.links, i, ticks[i])
	}
	pops := 0
	for b.Loop() {
		for {
			i, _ := w.pop(p.links, math.MaxUint64)
			pops++
			done := ticks[i] <= w.now
			if done {
				ticks[i] += 5000
			}
			w.add(p.links, i, ticks[i])
			if done {
				break
			}
		}
	}
	b.ReportMetric(float64(pops)/float64(b.N), "pops/op")
}
