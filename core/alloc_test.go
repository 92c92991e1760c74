package core

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// counter is entropy that costs nothing and never repeats.
type counter struct{ n uint64 }

func (c *counter) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		c.n++
		var word [8]byte
		// An odd factor spreads the count over all bits, like the real thing.
		binary.LittleEndian.PutUint64(word[:], c.n*0x9e3779b97f4a7c15)
		copy(p[i:], word[:])
	}
	return len(p), nil
}

// echo turns a request of mode none or cookie into the answer that grants it, in
// place: the blocks of both are the same but for what is zero.
func echo(b []byte, id ident.ServerID) []byte {
	pduAt := 40 + int(binary.LittleEndian.Uint16(b[42:]))
	binary.LittleEndian.PutUint64(b[4:], uint64(id))
	b[36] = 1
	binary.LittleEndian.PutUint16(b[pduAt:], 0x5252)
	resources := int(binary.LittleEndian.Uint16(b[pduAt+10:]))
	for end := len(b); resources > 0; resources-- {
		binary.LittleEndian.PutUint16(b[end-4:], 0)
		end -= 28
	}
	return b
}

// driver is a core with a steady number of records: each cycle begins a request
// and lets go of one whose horizon has come.
type driver struct {
	tb      testing.TB
	c       *Core
	now     time.Duration
	step    time.Duration // of a cycle
	request Request
	oldest  ident.ServerID
	out     Send
	answer  []byte
	event   Event
}

func newDriver(tb testing.TB, auth apikey.Auth, records int) *driver {
	tb.Helper()
	return newDriverOf(tb, auth, records, policy.StrictOldest())
}

func newDriverOf(tb testing.TB, auth apikey.Auth, records int, p policy.Policy) *driver {
	tb.Helper()
	c := newTestCore(tb, 2, func(cfg *Config) {
		cfg.Key = testKey(tb, auth)
		cfg.Entropy = &counter{}
		cfg.Policy = p
	})
	d := &driver{tb: tb, c: c, request: *askOne(), oldest: serverID(0), answer: make([]byte, 0, wire.MaxDatagram)}
	d.step = c.Timeline().Horizon() / time.Duration(records)
	d.out.Payload = make([]byte, 0, wire.MaxDatagram)
	for range 2 * records {
		d.cycle()
	}
	return d
}

func (d *driver) submit() RequestID {
	id, err := d.c.Submit(at(d.now), &d.request)
	if err != nil {
		d.tb.Fatal(err)
	}
	for d.c.PollSend(at(d.now), &d.out) {
		d.answer = append(d.answer[:0], d.out.Payload...)
	}
	return id
}

// drain takes everything that the core has to give, and counts the completions.
func (d *driver) drain() (completions int) {
	for d.c.PollSend(at(d.now), &d.out) {
	}
	for d.c.PollEvent(&d.event) {
		if d.event.Kind == EventCompleted {
			completions++
		}
	}
	return completions
}

// cycle submits a request, answers it, and reads its completion.
func (d *driver) cycle() {
	d.now += d.step
	d.c.HandleTimer(at(d.now))
	d.submit()
	if v := d.c.HandleDatagram(at(d.now), 1, echo(d.answer, d.oldest)); v != DatagramCounted {
		d.tb.Fatal(v)
	}
	if n := d.drain(); n != 1 {
		d.tb.Fatal(n)
	}
}

// TestNoAllocation holds that nothing costs garbage, once there are records
// enough: a request from Submit to its completion, a report, what is invalid or
// late, a replay and a timeout.
func TestNoAllocation(t *testing.T) {
	d := newDriver(t, apikey.AuthCookie, 1000)
	obs := observations(3)
	stale := append([]byte(nil), d.answer...)
	for name, f := range map[string]func(){
		"request": d.cycle,
		"report": func() {
			if err := d.c.Report(at(d.now), obs); err != nil {
				t.Fatal(err)
			}
			d.drain()
		},
		"malformed datagram": func() { d.c.HandleDatagram(at(d.now), 1, stale[:50]) },
		"late datagram":      func() { d.c.HandleDatagram(at(d.now), 1, stale) },
		"timeout": func() {
			d.submit()
			for range 3 {
				d.now += 20 * time.Millisecond
				d.c.HandleTimer(at(d.now))
				d.drain()
			}
		},
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestDelayedDeliveryAllocatesNothing decides requests of which one server never hears, so that each is
// owed a delivery that a timer makes later.
func TestDelayedDeliveryAllocatesNothing(t *testing.T) {
	p := policy.Default()
	p.DeliveryDelay = 1
	d := newDriverOf(t, apikey.AuthCookie, 1000, p)
	before := d.c.Stats().Sent[SendCompletion]
	const runs = 1000
	if n := testing.AllocsPerRun(runs, d.cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := d.c.Stats().Sent[SendCompletion] - before; n < runs || n > runs+2 {
		t.Errorf("%d deliveries of %d requests", n, runs)
	}
}
