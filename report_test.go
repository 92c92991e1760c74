package weir

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

func TestReportReachesEveryServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		// In a world without delays what is sent first arrives first.
		took := []time.Duration{-time.Second, 999 * time.Microsecond, 18*time.Millisecond + 1, math.MaxUint32*time.Millisecond + time.Hour}
		want := []uint32{0, 0, 18, math.MaxUint32}
		for _, d := range took {
			if err := c.Report(inventory.Took(d)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, s := range w.servers {
			if got := reportedMs(s); !slices.Equal(got, want) {
				t.Errorf("server %v was told %v ms, want %v", s.ID, got, want)
			}
			for _, o := range s.Log().Reports {
				o.Latency = 0
				if want := (wire.Observation{Tracker: inventory.ID(), TTL: 10000, MaxSamples: 100, MinSamples: 5}); o != want {
					t.Errorf("%+v, want %+v", o, want)
				}
			}
		}
	})
}

func TestReportIsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		obs := make([]Observation, 100)
		for i := range obs {
			obs[i] = inventory.Took(time.Duration(i) * time.Millisecond)
		}
		if err := c.Report(obs...); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := w.servers[0].Log().Reports
		for i, o := range got {
			if o.Latency != uint32(i) {
				t.Fatalf("observation %d says %d ms", i, o.Latency)
			}
		}
		if len(got) != len(obs) {
			t.Errorf("%d of %d observations arrived", len(got), len(obs))
		}
		if n := c.Stats().Sent[core.SendReport]; n < 3 {
			t.Errorf("in %d datagrams", n)
		}
	})
}

func TestReportInLayout1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client(func(cfg *Config) { cfg.Layout = wire.Layout1 })
		o := TrackerOptions{TTL: time.Second, MaxSamples: 9, MinSamples: 1, BufferSize: 8}
		over := o
		over.BufferSize = 33 // the key's quota is 32
		if err := c.Report(Tracker("db", over).Took(time.Second), Tracker("db", o).Took(2*time.Second)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := wire.Observation{Tracker: ident.TrackerLayout1("db", 1000, 9, 8, 1), TTL: 1000, MaxSamples: 9, BufferSize: 8, MinSamples: 1, Latency: 2000}
		if got := w.servers[0].Log().Reports; len(got) != 1 || got[0] != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if n := c.Stats().ObservationsLeftOut; n != 1 {
			t.Errorf("%d observations left out", n)
		}
	})
}

func TestReportNeverWaitsForDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		c := w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", &zone{hold: make(chan struct{})} })
		start := time.Now()
		if err := c.Report(inventory.Took(time.Second)); !errors.Is(err, ErrNoServers) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestReportThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Err: syscall.ENOBUFS} })
		if err := c.Report(inventory.Took(time.Second)); err != nil {
			t.Error(err)
		}
		if n := c.Stats().SendFailures[core.SendReport]; n != 2 {
			t.Errorf("%d failures counted", n)
		}
	})
}
