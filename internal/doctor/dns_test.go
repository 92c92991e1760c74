package doctor

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/server"
)

// What DNS says instead of servers.
func TestDNSFailures(t *testing.T) {
	for _, c := range []struct {
		code    string
		failure Failure
		zone    *zone
		words   string
	}{
		{"dns-no-name", NoName, named(), "no name " + serviceName},
		{"dns-no-records", NoRecord, &zone{srv: map[string][]discovery.SRV{serviceName: nil}}, "no server is registered"},
		{"dns-refused", Refused, &zone{err: &discovery.ResponseError{Code: "REFUSED"}}, "it answered REFUSED"},
		{"dns-silent", Silent, &zone{err: errSilent}, "192.0.2.53:53"},
	} {
		t.Run(c.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r := w.run(w.lookedUp(c.zone))
				w.want(r, NoDecision, c.code)
				w.says(r, c.code, c.words)
				if r.DNS.Failure != c.failure || r.DNS.Name != serviceName || r.DNS.Asked != "192.0.2.53:53" || r.Path != nil {
					t.Errorf("%+v, %+v", r.DNS, r.Path)
				}
			})
		})
	}
}

// A zone that was given as a domain, a domain as a zone, the name of the SRV records
// as either, and another key's domain: the flag that would be right is told.
func TestZoneAndDomain(t *testing.T) {
	for _, c := range []struct{ zone, domain, flag string }{
		{"", "rl.test", "--zone=rl.test"},
		{"c-7.rl.test", "", "--domain=c-7.rl.test"},
		{"", serviceName, "--domain=c-7.rl.test"},
		{serviceName + ".", "", "--domain=c-7.rl.test"},
		{"c-8.rl.test", "", "--zone=rl.test"},
	} {
		t.Run(c.zone+c.domain, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.lookedUp(named(w.serve("10.0.0.1:29292")))
				cfg.Client.Zone, cfg.Client.Domain = c.zone, c.domain
				r := w.run(cfg)
				w.want(r, NoDecision, "dns-other-name")
				w.says(r, "dns-other-name", "Use "+c.flag+" instead", "1 server at "+serviceName)
			})
		})
	}
}

// The domain of another key has servers, which are silent to this one.
func TestDomainOfAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		z := named(w.serve("10.0.0.1:29292"))
		w.key = newKey(t, 3, 8)
		cfg := w.lookedUp(z)
		cfg.Client.Zone, cfg.Client.Domain = "", "c-7.rl.test"
		r := w.run(cfg)
		w.want(r, NoDecision, "other-keys-domain", "silent")
		w.says(r, "other-keys-domain", "key with ID 7", "this key has ID 8", "--domain=c-8")
	})
}

// Records that clients skip are told apart, and the rest is used.
func TestSkippedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		z := named(s)
		z.srv[serviceName] = append(z.srv[serviceName],
			discovery.SRV{Target: "ns.rl.test.", Port: 29292},
			discovery.SRV{Target: "s-1000.rl.test.", Port: 0},
			discovery.SRV{Target: "s-2000.rl.test.", Port: 29292},
			discovery.SRV{Target: "s-3000.rl.test.", Port: 29292})
		z.hosts["s-3000.rl.test"] = []netip.Addr{netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("224.0.0.1")}
		r := w.run(w.lookedUp(z))
		w.want(r, Degraded, "dns-no-target", "dns-no-addresses")
		w.says(r, "dns-no-target", "2 targets", "ns.rl.test (its first label is not s-<server ID>)", "s-1000.rl.test (port 0)")
		w.says(r, "dns-no-addresses", "2 targets", "s-2000.rl.test (it has no address)", "s-3000.rl.test (nobody can be reached at 0.0.0.0, 224.0.0.1)")
		taken := 0
		for _, rec := range r.DNS.Records {
			if rec.Taken {
				taken++
			}
		}
		if taken != 1 || len(r.DNS.Hosts) != 3 || len(r.Servers) != 1 || r.Servers[0].ID != s.ID {
			t.Errorf("%+v", r.DNS.Records)
		}
	})
}

// A server without an address is not found elsewhere under the same name.
func TestNoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		z := named(w.serve("10.0.0.1:29292"))
		clear(z.hosts)
		cfg := w.lookedUp(z)
		cfg.Client.Zone, cfg.Client.Domain = "", "c-7.rl.test"
		w.want(w.run(cfg), NoDecision, "dns-no-addresses")
	})
}

// None is left: no client can ask anyone.
func TestNoConformingRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		z := named()
		z.srv[serviceName] = []discovery.SRV{{Target: "ns.rl.test.", Port: 1}}
		r := w.run(w.lookedUp(z))
		w.want(r, NoDecision, "dns-no-target")
	})
}

// Targets over the limits are dropped as a client does: the youngest.
func TestTooManyTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		z := named(w.serve("10.0.0.1:29292"))
		old := z.srv[serviceName][0]
		z.srv[serviceName] = nil
		for i := range 16 {
			host := fmt.Sprintf("s-%d.rl.test", i+1)
			z.srv[serviceName] = append(z.srv[serviceName], discovery.SRV{Target: host + ".", Port: 9})
			z.hosts[host] = []netip.Addr{netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})}
		}
		z.srv[serviceName] = append(z.srv[serviceName], old)
		r := w.run(w.lookedUp(z))
		w.want(r, NoDecision, "dns-no-addresses", "silent")
		w.says(r, "dns-no-addresses", old.Target[:len(old.Target)-1]+" (over the limit of servers or addresses)")
	})
}

// One question of two failed: what the other says is used.
func TestHalfOfTheAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		z := named(w.serve("10.0.0.1:29292"))
		z.half = &discovery.ResponseError{Code: "SERVFAIL"}
		r := w.run(w.lookedUp(z))
		w.want(r, Degraded, "dns-half")
		w.says(r, "dns-half", "IPv6", "it answered SERVFAIL")
	})
}

// A server in DNS that starts in the future, as this clock has it, is asked all the
// same, which tells by how much the clock is wrong; a client would know nobody.
func TestFutureStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.off = -24 * time.Hour
		r := w.run(w.lookedUp(named(s)))
		w.want(r, NoDecision, "clock")
		w.says(r, "clock", "24h behind")
		if r.Path != nil || !r.Servers[0].Future || r.Servers[0].Oldest || r.DNS.Records[0].Taken {
			t.Errorf("%+v %+v", r.Servers[0], r.DNS.Records[0])
		}
	})
}

// The same with a clock that is off by what the fan misses: the ID in DNS is still
// a hint.
func TestFutureStartAndSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.off = -37*time.Hour - 20*time.Minute - 20*time.Second
		r := w.run(w.lookedUp(named(s)))
		w.want(r, NoDecision, "dns-future", "silent")
		w.says(r, "dns-future", "up to 37h10m20s from now", "most likely behind, by at least that much")
	})
}

// Of two servers one starts in the future: it is that one's clock.
func TestOneFutureStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.serve("10.0.0.1:29292")
		b := w.serveWith(func(c *server.Config) { c.Clock = clock{time.Hour} }, "10.0.0.2:29292")
		r := w.run(w.lookedUp(named(a, b)))
		w.want(r, Degraded, "server-clock")
		w.says(r, "server-clock", b.ID.String())
		// Where it does not answer, that the other one does still tells it.
		b.Addrs = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:9")}
		r = w.run(w.lookedUp(named(a, b)))
		w.want(r, Degraded, "dns-future", "silent-server")
		w.says(r, "dns-future", "Other servers answer at this machine's time")
	})
}

// The boundary to what is skipped is a client's own.
func TestFutureIsAClients(t *testing.T) {
	for _, off := range []time.Duration{-10*time.Minute - 59*time.Second, -10*time.Minute - 61*time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := w.serve("10.0.0.1:29292")
			w.off = off
			c, err := w.dial(t.Context(), w.lookedUp(named(s)).Client)
			if err == nil {
				c.Close()
			}
			r := w.run(w.lookedUp(named(s)))
			w.want(r, NoDecision, "clock")
			if knows := err == nil; knows == r.Servers[0].Future {
				t.Errorf("off by %v: skipped %v, and a client says %v", off, r.Servers[0].Future, err)
			}
		})
	}
}
