package doctor

import (
	"context"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
)

var errTooMany = os.NewSyscallError("socket", syscall.EMFILE)

// starved is a stack that has no sockets, and a resolver that has none for a host.
type starved struct {
	*zone
	host string
}

func (starved) Listen(netip.AddrPort, udp.Options) (udp.Conn, error) { return nil, errTooMany }

func (s starved) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if host == s.host {
		return nil, 0, errTooMany
	}
	return s.zone.LookupAddrs(ctx, host)
}

// A process that may open no more files has nobody else to blame: no DNS server, no
// record, no address family.
func TestOutOfFiles(t *testing.T) {
	for name, c := range map[string]struct {
		verdict Verdict
		change  func(*Config, *zone, discovery.Server)
	}{
		"all lookups": {NoDecision, func(_ *Config, z *zone, _ discovery.Server) { z.err = errTooMany }},
		"one family":  {Degraded, func(_ *Config, z *zone, _ discovery.Server) { z.half = errTooMany }},
		"one host": {Degraded, func(cfg *Config, z *zone, b discovery.Server) {
			cfg.Client.Resolver = starved{z, b.ID.Label() + ".rl.test"}
		}},
		"the doctor's": {Degraded, func(cfg *Config, _ *zone, _ discovery.Server) { cfg.Stack = starved{} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
				z := named(a, b)
				cfg := w.lookedUp(z)
				c.change(&cfg, z, b)
				r := w.run(cfg)
				w.want(r, c.verdict, "no-files")
				w.says(r, "no-files", "ulimit -n")
			})
		})
	}
}

// Without a socket to knock from, silence stays silence.
func TestOutOfFilesForTheKnock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config(discovery.Server{ID: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:29292")}})
		cfg.Knock = func(context.Context, netip.AddrPort, []byte) error { return errTooMany }
		w.want(w.run(cfg), NoDecision, "silent")
	})
}
