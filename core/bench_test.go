package core

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
)

// inFlight are the numbers of records with which the core is measured: what it
// does for one request must not grow with them.
var inFlight = []int{10, 100_000}

// BenchmarkCycle is a whole request: timer, Submit, first sends, the oldest
// server's answer, completion delivery, completion.
func BenchmarkCycle(b *testing.B) {
	for _, auth := range []apikey.Auth{apikey.AuthNone, apikey.AuthCookie} {
		for _, n := range inFlight {
			b.Run(fmt.Sprintf("%v/records=%d", auth, n), func(b *testing.B) {
				d := newDriver(b, auth, n)
				b.ReportAllocs()
				for b.Loop() {
					d.cycle()
				}
			})
		}
	}
}

// BenchmarkSubmit is Submit alone, with the record taken back.
func BenchmarkSubmit(b *testing.B) {
	for _, auth := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
		for _, n := range inFlight {
			b.Run(fmt.Sprintf("%v/records=%d", auth, n), func(b *testing.B) {
				d := waitingDriver(b, auth, n)
				b.ReportAllocs()
				for b.Loop() {
					id, err := d.c.Submit(at(d.now), &d.request)
					if err != nil {
						b.Fatal(err)
					}
					f := d.c.flights.find(id)
					d.c.inFlight--
					d.c.forget(f)
					d.c.sends.pop()
				}
			})
		}
	}
}

// BenchmarkHandleDatagram is a valid answer that is opened, read and matched, and
// then found to be its server's second.
func BenchmarkHandleDatagram(b *testing.B) {
	for _, auth := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
		for _, n := range inFlight {
			b.Run(fmt.Sprintf("%v/records=%d", auth, n), func(b *testing.B) {
				d := waitingDriver(b, auth, n)
				d.submit()
				answer := newResponder(b, d.c.cfg.Key).answer(b, d.answer, serverID(1), reply{})
				if v := d.c.HandleDatagram(at(d.now), 1, answer); v != DatagramCounted {
					b.Fatal(v)
				}
				b.ReportAllocs()
				for b.Loop() {
					if v := d.c.HandleDatagram(at(d.now), 1, answer); v != DatagramDuplicate {
						b.Fatal(v)
					}
				}
			})
		}
	}
}

// BenchmarkHandleTimer is one replay of one request that is due, and its two
// datagrams.
func BenchmarkHandleTimer(b *testing.B) {
	for _, n := range inFlight {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			d := waitingDriver(b, apikey.AuthCookie, n)
			b.ReportAllocs()
			for b.Loop() {
				deadline, _ := d.c.Deadline()
				now := Time{Mono: deadline}
				d.c.HandleTimer(now)
				sent := 0
				for d.c.PollSend(now, &d.out) {
					sent++
				}
				if sent < 2 { // its 65535 replays are over
					d.now = deadline
					d.drain()
					d.submit()
				}
			}
		})
	}
}

// waitingDriver is a driver with n requests in flight that nobody answers, and
// that are replayed without an end.
func waitingDriver(tb testing.TB, auth apikey.Auth, n int) *driver {
	tb.Helper()
	d := newDriver(tb, apikey.AuthCookie, 1)
	d.c = newTestCore(tb, 2, func(cfg *Config) {
		cfg.Key = patientKey(tb, auth)
		cfg.Entropy = &counter{}
		cfg.Policy = policy.Policy{Unit: 10 * time.Second, Replays: 65535, Gap: policy.Fixed(1), Preference: policy.Fixed(1)}
		cfg.MaxInFlight = MaxInFlightLimit
	})
	d.now = 0
	for range n {
		d.now += 10 * time.Microsecond
		d.submit()
	}
	return d
}

// patientKey is a key whose servers remember a request for as long as it takes.
func patientKey(tb testing.TB, auth apikey.Auth) apikey.Key {
	tb.Helper()
	q := apikey.DefaultQuotas()
	q.DedupTTL = math.MaxUint32
	key, err := apikey.NewLegacy(auth, 7, q, seeded(1))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
