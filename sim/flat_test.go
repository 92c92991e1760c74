package sim

import "testing"

// TestFlatMemory: a run of twice as many requests needs no more of anything that grows.
func TestFlatMemory(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	size := func(requests int) (datagrams, pending, planned, flights int) {
		s := bar(requests)
		s.Faults = nil
		w, err := New(s, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		for w.Step() {
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		for i := range w.clients {
			c := &w.clients[i]
			if len(c.pending)+len(c.lookups) > 2 || len(c.sockets) > 1 {
				t.Errorf("at the end a client has %d requests and lookups and %d sockets", len(c.pending)+len(c.lookups), len(c.sockets))
			}
			flights += c.core.Stats().InFlight
		}
		if len(w.pool.free) != w.pool.made || len(w.spare) != w.counts.Pending {
			t.Errorf("%d of %d datagrams and %d of %d requests came back", len(w.pool.free), w.pool.made, len(w.spare), w.counts.Pending)
		}
		sum := w.Summary()
		return sum.Datagrams, sum.Pending, sum.Planned, flights
	}
	d1, p1, q1, f1 := size(n)
	d2, p2, q2, f2 := size(2 * n)
	// What is needed at most at one time is a matter of chance and may creep up a little.
	if d2 > d1*3/2 || p2 > p1*3/2 || q2 > q1*2 {
		t.Errorf("%d requests need %d datagrams, %d records and %d events, twice as many %d, %d and %d", n, d1, p1, q1, d2, p2, q2)
	}
	if f1+f2 > 0 {
		t.Errorf("%d and %d requests are left in the cores", f1, f2)
	}
}
