package weir

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// observed1000 is a thousand observations of ten trackers; in layout 1 those of
// the tracker with number 3 are over the key's quota of 32 samples.
func observed1000() []Observation {
	obs := make([]Observation, 1000)
	for i := range obs {
		o := TrackerOptions{TTL: time.Second, MaxSamples: 9, MinSamples: 1, BufferSize: 32}
		if i%10 == 3 {
			o.BufferSize = 33
		}
		obs[i] = Tracker(fmt.Sprint("tracker ", i%10), o).Took(time.Duration(i) * time.Millisecond)
	}
	return obs
}

// A thousand observations arrive at every server, each once and in order, in as
// few datagrams as have room for them, and at once.
func TestLongReport(t *testing.T) {
	for layout, want := range map[wire.Layout]struct{ observations, leftOut, datagrams int }{
		wire.Layout2: {1000, 0, 30},  // of 34
		wire.Layout1: {900, 100, 30}, // of 31
	} {
		t.Run(layout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3)
				c := w.client(func(cfg *Config) { cfg.Layout = layout })
				start := time.Now()
				if err := c.Report(observed1000()...); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("Report took %v", d)
				}
				synctest.Wait()
				for _, s := range w.servers {
					got := s.Log().Reports
					if len(got) != want.observations {
						t.Fatalf("server %v was told of %d observations, want %d", s.ID, len(got), want.observations)
					}
					last := -1
					for _, o := range got {
						if int(o.Latency) <= last || layout == wire.Layout1 && o.Latency%10 == 3 {
							t.Fatalf("%d ms after %d ms", o.Latency, last)
						}
						last = int(o.Latency)
					}
				}
				room := wire.MaxObservations(w.key.Auth(), layout)
				if fewest := (want.observations + room - 1) / room; fewest != want.datagrams {
					t.Fatalf("%d datagrams have room for all, not %d", fewest, want.datagrams)
				}
				s := c.Stats()
				if s.Sent[core.SendReport] != uint64(3*want.datagrams) || s.Observations != uint64(want.observations) || s.ObservationsLeftOut != uint64(want.leftOut) {
					t.Errorf("%d datagrams, %d observations, %d left out", s.Sent[core.SendReport], s.Observations, s.ObservationsLeftOut)
				}
			})
		})
	}
}

// full is a host that has no socket to give.
type full struct{ *udp.NetworkHost }

var errNoSockets = errors.New("no sockets left")

func (full) Listen(netip.AddrPort, udp.Options) (udp.Conn, error) { return nil, errNoSockets }

// refusing is a host whose sockets send nothing.
type refusing struct{ *udp.NetworkHost }

type refusingConn struct{ udp.Conn }

func (h refusing) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	return refusingConn{c}, err
}

func (refusingConn) Write([]udp.Datagram) (int, error) { return 0, errNoSockets }

// Without a socket, or with one that refuses, a report neither fails nor waits:
// each datagram is counted.
func TestLongReportThatCannotBeSent(t *testing.T) {
	for name, stack := range map[string]func(*world) udp.Stack{
		"no socket":         func(w *world) udp.Stack { return full{w.host} },
		"a refusing socket": func(w *world) udp.Stack { return refusing{w.host} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				w.stack = stack(w)
				c := w.client()
				start := time.Now()
				for range 3 {
					if err := c.Report(observed1000()...); err != nil {
						t.Error(err)
					}
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("Report took %v", d)
				}
				if s := c.Stats(); s.SendFailures[core.SendReport] != 3*2*30 || s.Sent[core.SendReport] != 3*2*30 {
					t.Errorf("%d failures of %d", s.SendFailures[core.SendReport], s.Sent[core.SendReport])
				}
				if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrIO) || !errors.Is(err, errNoSockets) {
					t.Errorf("a request fails with %v", err)
				}
			})
		})
	}
}

// Reports wait neither for requests, which fail here in every way, nor for answers.
func TestReportsGoOutWhileRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.silence(0)
		c := w.client(bounded(1), failingAfter(2, time.Second))
		report := func(when string) {
			t.Helper()
			before, start := len(w.servers[0].Log().Reports), time.Now()
			if err := c.Report(inventory.Took(time.Second), inventory.Took(time.Second)); err != nil || time.Since(start) != 0 {
				t.Errorf("%s: %v after %v", when, err, time.Since(start))
			}
			synctest.Wait()
			if n := len(w.servers[0].Log().Reports) - before; n != 2 {
				t.Errorf("%s: %d observations arrived", when, n)
			}
		}
		for range 2 {
			asking := crowd(context.Background(), t, c, 1)
			expectFull(t, c)
			report("no place for requests")
			asking.Wait()
		}
		if _, err := took(c); !errors.Is(err, ErrFailFast) {
			t.Fatal(err)
		}
		report("failing fast")
	})
}
