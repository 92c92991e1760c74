package limiter

import (
	"math"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
	"pgregory.net/rapid"
)

// diary is a calendar with an owner who does as [dedup] does, and a list of what waits in it.
type diary struct {
	calendar
	pool    pool[uint64] // times
	waiting []uint32
	latest  uint64 // the latest time that was said to be now
}

func (d *diary) add(time, now uint64) {
	i := d.pool.take()
	*d.pool.at(i) = time
	d.latest = max(d.latest, now)
	d.calendar.add(d.pool.links, i, time, now)
	d.waiting = append(d.waiting, i)
}

// take pops until a record is due, at most so often, and returns its time.
func (d *diary) take(before, now uint64, most int) (time uint64, ok bool) {
	for range most {
		i, ok := d.calendar.pop(d.pool.links, before)
		if !ok {
			return 0, false
		}
		if time = *d.pool.at(i); !d.due(time) {
			d.latest = max(d.latest, now)
			d.calendar.add(d.pool.links, i, time, now)
			continue
		}
		at := slices.Index(d.waiting, i)
		if at < 0 {
			panic("a record comes out that is not in")
		}
		d.waiting = slices.Delete(d.waiting, at, at+1)
		d.pool.give(i)
		return time, true
	}
	return 0, false
}

// TestCalendar adds and pops at random while time goes on and jumps both ways: the first record is
// the earliest, unless it was overdue when all were; none is lost, and none comes early.
func TestCalendar(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		width := rapid.SampledFrom([]uint64{50, 10_000, calendarSlots - 1, calendarSlots, 7 * calendarSlots, 1 << 33}).Draw(t, "width")
		var d diary
		d.fit(width)
		now := uint64(1_800_000_000_000)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				now += rapid.Uint64Range(0, width).Draw(t, "passes")
			case 1:
				by := rapid.Uint64Range(0, 1<<rapid.UintRange(1, 18).Draw(t, "size")).Draw(t, "by")
				if rapid.Bool().Draw(t, "back") {
					now -= by
				} else {
					now += by
				}
			case 2, 3, 4, 5, 6:
				d.add(now+rapid.OneOf(rapid.Uint64Range(0, width), rapid.Uint64Range(0, 3)).Draw(t, "after"), now)
			case 7, 8:
				if time, ok := d.take(now, now, math.MaxInt32); ok && time>>d.shift >= now>>d.shift {
					t.Fatalf("%d comes at %d", time, now)
				}
			default:
				time, ok := d.take(math.MaxUint64, now, math.MaxInt32)
				if !ok && len(d.waiting) > 0 {
					t.Fatal("there is no first record")
				}
				for _, i := range d.waiting {
					if other := *d.pool.at(i); other>>d.shift < time>>d.shift && time>>d.shift >= d.latest>>d.shift {
						t.Fatalf("%d comes before %d, at %d", time, other, now)
					}
				}
			}
			if d.calendar.waiting != len(d.waiting) {
				t.Fatalf("%d wait, want %d", d.calendar.waiting, len(d.waiting))
			}
		}
		for len(d.waiting) > 0 {
			if _, ok := d.take(math.MaxUint64, now, math.MaxInt32); !ok {
				t.Fatalf("%d are lost", len(d.waiting))
			}
		}
		if n := len(d.spare); n != d.held {
			t.Fatalf("%d of %d pages came back", n, d.held)
		}
	})
}

// TestCalendarSpansItsWidth tells apart what lies at the far end, however wide the calendar must be.
func TestCalendarSpansItsWidth(t *testing.T) {
	const now = 1_800_000_000_000 / calendarSlots * calendarSlots << 9 // a tick of every length
	for _, width := range []uint64{50, calendarSlots - 1, calendarSlots, 2*calendarSlots - 1, 2 * calendarSlots, 3 * calendarSlots, 1 << 20} {
		var d diary
		d.fit(width)
		d.add(now, now)
		d.add(now+width, now)
		before := uint64(now) + width - 1<<d.shift
		d.add(before, now)
		for k, want := range []uint64{now, before, now + width} {
			if time, ok := d.take(math.MaxUint64, now, 3); !ok || time != want {
				t.Errorf("width %d: %d comes out as number %d, want %d", width, time-now, k, want-now)
			}
		}
	}
}

// TestCalendarRound: a record one round of the ring ahead of a new first one does not share its slot.
func TestCalendarRound(t *testing.T) {
	const now = 1_800_000_000_000
	var d diary
	d.fit(50)
	d.add(now+calendarSlots, now)
	d.add(now, now)
	if time, ok := d.take(math.MaxUint64, now, 1); !ok || time != now {
		t.Errorf("the first to come out is %d %t, want %d", time, ok, uint64(now))
	}
}

// TestCalendarAfterJumps counts what a jump of the clock costs: records are looked at once more, and
// not once for every round of the ring that the jump was long.
func TestCalendarAfterJumps(t *testing.T) {
	for _, jump := range []uint64{calendarSlots, 365 * 24 * 3600 * 1000} {
		var d diary
		d.fit(10_000)
		now := uint64(1_800_000_000_000)
		for k := range uint64(1000) {
			d.add(now+k, now)
		}
		now += jump
		for k := range uint64(1000) {
			d.add(now+1+k, now)
		}
		for k := range 1000 {
			if time, ok := d.take(now, now, 1); !ok || time >= now {
				t.Fatalf("after %d: %d %t", k, time, ok)
			}
		}
		if _, ok := d.calendar.pop(d.pool.links, now); ok || len(d.waiting) != 1000 {
			t.Fatalf("%d wait, want those after the jump, and none to look at", len(d.waiting))
		}
		// The clock goes back: what is then added is the first to go.
		now -= jump
		d.add(now+5, now)
		if time, _ := d.take(math.MaxUint64, now, 1); time != now+5 {
			t.Errorf("%d comes first, want %d", time, now+5)
		}
	}
}

// TestEvictionOrder keeps a table full under load: it is always the identity that is spent first that
// goes, so the floor is never higher than it must be, however many wait in between.
func TestEvictionOrder(t *testing.T) {
	c := testConfig()
	c.Identities = 5000
	r := newRig(t, c)
	var spent []uint64 // of what was executed, in order
	execute := func(h wire.Header) {
		t.Helper()
		if v := r.send(h, wire.Request{}); v != Granted {
			t.Fatalf("a clock that is %d ms slow: %v", r.now.Wall-h.Timestamp, v)
		}
		at, _ := slices.BinarySearch(spent, h.Timestamp+60)
		spent = slices.Insert(spent, at, h.Timestamp+60)
	}
	for i := range 15_000 {
		r.pass(1_600_000) // the table holds the last 4 s, and would have to hold 5
		execute(r.header())
		slow := r.header()
		slow.Timestamp -= min(uint64(i), uint64(i%500)*7) // and still above the floor
		execute(slow)
		n := len(spent) - c.Identities
		if n <= 0 {
			continue
		}
		if s := r.e.Stats(); s.Floor != spent[n-1] || s.Identities != c.Identities {
			t.Fatalf("after %d: floor %d with %d identities, want %d", 2*i, s.Floor, s.Identities, spent[n-1])
		}
		spent = slices.Delete(spent, 0, n)
	}
}

// TestEvictionOrderOfWideSkew is the same for clocks that may differ by much: those that are ahead are
// told apart, however many they are.
func TestEvictionOrderOfWideSkew(t *testing.T) {
	c := testConfig()
	c.Skew, c.Identities, c.Start = 20_000, 301, wallStart-30_000
	r := newRig(t, c)
	send := func(off int64) {
		t.Helper()
		h := r.header()
		h.Timestamp = uint64(int64(h.Timestamp) + off)
		if v := r.send(h, wire.Request{}); v != Granted {
			t.Fatal(v)
		}
	}
	send(-20_000)
	for i := range int64(300) {
		send(20_000 - 8*i)
	}
	for i, first := range []int64{-20_000, 20_000 - 8*299, 20_000 - 8*298} {
		send(19_999 - int64(i))
		if s := r.e.Stats(); s.Floor != uint64(wallStart+first+60) {
			t.Fatalf("eviction %d: the floor is at %d, want %d", i, int64(s.Floor)-wallStart-60, first)
		}
	}
}
