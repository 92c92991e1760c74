package server

import (
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
)

// feed gives the moderation a batch in every step of time, for a while, and returns how often it napped, and for how
// long together.
func feed(m *moderation, from int64, step, span time.Duration, n, dropped int) (naps int, together time.Duration) {
	m.nap = func(d time.Duration) {
		naps++
		together += d
	}
	for at := from; at < from+int64(span); at += int64(step) {
		m.dropped = uint64(dropped)
		m.batch(at, n, n == batchSize)
	}
	return naps, together
}

// A worker naps in a flood of what it drops, between any two batches but the first, and in nothing else.
func TestModeration(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name       string
		step       time.Duration
		n, dropped int
		least      int // naps in 10 ms
		most       int
	}{
		{"a datagram alone", 10 * time.Millisecond, 1, 1, 0, 0},
		{"twenty a millisecond", 50 * us, 1, 1, 0, 0},
		{"a flood one by one", 10 * us, 1, 1, 1000 - 33, 1000 - 32},
		{"a flood in batches", 100 * us, batchSize - 1, batchSize - 1, 98, 99},
		{"a flood of which more is there", 100 * us, batchSize, batchSize, 0, 0},
		{"decisions only", 10 * us, 4, 0, 0, 0},
		{"a quarter are decisions", 10 * us, 4, 3, 0, 0},
		{"an eighth are decisions", 20 * us, 8, 7, 490, 499},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := moderation{kept: 1}
			naps, together := feed(&m, 1, c.step, 10*time.Millisecond, c.n, c.dropped)
			if naps < c.least || naps > c.most || together != time.Duration(naps)*moderateFor {
				t.Errorf("%d naps, want from %d to %d; %v together", naps, c.least, c.most, together)
			}
		})
	}
}

// The first datagram after a flood that is dropped is one like any other.
func TestModerationEnds(t *testing.T) {
	var m moderation
	flood, _ := feed(&m, 1, 10*time.Microsecond, 5*time.Millisecond, 1, 1)
	after, _ := feed(&m, int64(8*time.Millisecond), time.Millisecond, 20*time.Millisecond, 1, 1)
	if flood == 0 || after != 0 {
		t.Errorf("%d naps in a flood, want some; %d after it, want none", flood, after)
	}
}

// Naps are long only when all has been dropped for some time, and short at once when something is not.
func TestModerationAlone(t *testing.T) {
	const step = 100 * time.Microsecond
	at := int64(time.Second)
	var m moderation
	for _, c := range []struct {
		name string
		span time.Duration
		kept int // of eight in a batch
		nap  time.Duration
	}{
		{"junk alone", 5 * time.Millisecond, 0, moderateAlone},
		{"and one that is not", step, 1, moderateFor},
		{"a while after", time.Duration(aloneAfter) - step, 0, moderateFor},
		{"decisions come now and then", 5 * time.Millisecond, 1, moderateFor},
		{"and no more", time.Duration(aloneAfter), 0, moderateFor},
		{"junk alone again", 5 * time.Millisecond, 0, moderateAlone},
	} {
		naps, together := feed(&m, at, step, c.span, 8, 8-c.kept)
		if naps == 0 || together != time.Duration(naps)*c.nap {
			t.Errorf("%s: %d naps, %v together, want %v each", c.name, naps, together, c.nap)
		}
		at += int64(c.span)
	}
}

// What a worker drops counts, for whatever reason.
func TestWorkerCountsDropped(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	forged := newClient(t, key).request(checkout(1))
	forged[len(forged)-1] ^= 1
	w.ask(forged)
	w.ask(forged[:60])
	if w.moderation.dropped != 2 {
		t.Errorf("%d datagrams dropped, want 2", w.moderation.dropped)
	}
}

// A server's workers moderate where they have threads of their own.
func TestServerModerates(t *testing.T) {
	s, err := New(Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, l := range s.listeners {
		for _, w := range l.workers {
			if w.moderation.nap == nil {
				t.Fatal("a worker does not moderate")
			}
			w.moderation.nap(time.Microsecond)
		}
	}
}
