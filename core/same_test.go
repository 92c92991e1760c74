package core

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSameInputsSameOutputs drives two cores of one seed with the same calls:
// every datagram, event and deadline is the same, byte for byte.
func TestSameInputsSameOutputs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		domain := rapid.Bool().Draw(rt, "domain")
		var cores [2]*Core
		for i := range cores {
			cores[i] = newTestCore(t, 0, func(cfg *Config) {
				if domain {
					cfg.Domain = "example.test"
				}
			})
			if !domain {
				if err := cores[i].SetMembership(at(0), testServers(3)); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := newResponder(t, cores[0].cfg.Key)
		now := time.Duration(0)
		var sent []Send
		var lookups []Lookup
		both := func(f func(c *Core) any) {
			a, b := f(cores[0]), f(cores[1])
			if !reflect.DeepEqual(a, b) {
				rt.Fatalf("%+v, and %+v", a, b)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(-1000, 30_000).Draw(t, "µs")) * time.Microsecond
				if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
					now += time.Minute
				}
			},
			"submit": func(*rapid.T) {
				both(func(c *Core) any { _, err := c.Submit(at(now), askOne()); return err })
			},
			"report": func(*rapid.T) { both(func(c *Core) any { return c.Report(at(now), observations(2)) }) },
			"timer":  func(*rapid.T) { both(func(c *Core) any { c.HandleTimer(at(now)); return nil }) },
			"answer": func(rt *rapid.T) {
				if len(sent) == 0 {
					return
				}
				s := sent[rapid.IntRange(0, len(sent)-1).Draw(rt, "which")]
				if s.Kind == SendReport {
					both(func(c *Core) any { return c.HandleDatagram(at(now), 1, s.Payload) })
					return
				}
				b := r.answer(t, s.Payload, s.Server, reply{changePort: rapid.Bool().Draw(rt, "change port")})
				both(func(c *Core) any { return c.HandleDatagram(at(now), 1, b) })
			},
			"fail": func(t *rapid.T) {
				if len(sent) == 0 {
					return
				}
				ref := sent[rapid.IntRange(0, len(sent)-1).Draw(t, "which")].Ref
				both(func(c *Core) any { c.HandleSendFailure(at(now), ref, errors.New("unreachable")); return nil })
			},
			"rebound": func(*rapid.T) { both(func(c *Core) any { c.Rebound(at(now), 1, 1); return nil }) },
			"resolve": func(t *rapid.T) {
				if len(lookups) == 0 {
					return
				}
				l := lookups[len(lookups)-1]
				srv := SRVAnswer{Records: []SRV{{serverID(0).Label() + ".a", 1}, {serverID(1).Label() + ".b", 2}}, TTL: time.Second}
				if rapid.Bool().Draw(t, "fails") {
					srv = SRVAnswer{Err: errors.New("server failure")}
				}
				both(func(c *Core) any {
					c.HandleSRV(at(now), l.ID, srv)
					c.HandleAddrs(at(now), l.ID, AddrAnswer{Addrs: nil})
					return nil
				})
			},
			"": func(*rapid.T) {
				a, b := drainSends(cores[0], at(now)), drainSends(cores[1], at(now))
				if !reflect.DeepEqual(a, b) {
					rt.Fatalf("sends %+v, and %+v", a, b)
				}
				sent = append(sent, a...)
				sent = sent[max(0, len(sent)-16):]
				x, y := drainEvents(cores[0]), drainEvents(cores[1])
				if len(x) != len(y) {
					rt.Fatalf("%d events, and %d", len(x), len(y))
				}
				for i := range x {
					if a, b := fmt.Sprintf("%+v", x[i]), fmt.Sprintf("%+v", y[i]); a != b {
						rt.Fatalf("event %s, and %s", a, b)
					}
					if x[i].Kind == EventLookup {
						lookups = append(lookups, x[i].Lookup)
					}
				}
				both(func(c *Core) any { at, ok := c.Deadline(); return []any{at, ok} })
				both(func(c *Core) any { return c.Stats() })
			},
		})
	})
}
