package weir_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/session"
)

// A trace is what one server after the other does with a request: when it answers
// and with what.
type trace []behavior

type behavior struct {
	delay   time.Duration // of every answer
	skipped int           // how many datagrams of the request are lost first
	deficit uint16
	late    uint32 // the estimate for the guard, in ms
	steer   uint8
	broken  bool // datagrams to it cannot be sent
}

// network is one of servers that behave like a trace.
func (tr trace) network(t *testing.T, key apikey.Key) (client *udp.NetworkHost, servers []discovery.Server, logs []*responder.Responder) {
	n := udp.NewNetwork()
	broken := make(map[netip.Addr]bool)
	for i, b := range tr {
		at := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		broken[at] = b.broken
		r := responder.Start(t, n.Host(at), netip.AddrPortFrom(at, 29292).String(), ident.ServerID(1000*(i+1)), key)
		r.Do(func(e *responder.Exchange) {
			e.Delay, e.Silent = b.delay, e.Repeat < b.skipped
			e.Header.Steering = b.steer
			e.Answer.Deficits[0], e.Answer.Latencies[0] = b.deficit, b.late
		})
		servers, logs = append(servers, r.Member()), append(logs, r)
	}
	n.SetLink(func(p udp.Packet) udp.Fate {
		if broken[p.To.Addr()] {
			return udp.Fate{Err: errors.New("no way there")}
		}
		return udp.Fate{}
	})
	return n.Host(netip.MustParseAddr("10.0.1.1")), servers, logs
}

// outcome is all that can be seen of a request.
type outcome struct {
	decision string
	round    int
	elapsed  time.Duration
	err      string
	stats    core.Stats
	received string // datagrams by server
}

// run plays a trace once, with a function that asks on a host.
func (tr trace) run(t *testing.T, key apikey.Key, ask func(*udp.NetworkHost, []discovery.Server) (weir.Decision, weir.Stats, error)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		host, servers, logs := tr.network(t, key)
		d, stats, err := ask(host, servers)
		o = outcome{decision: d.String(), round: d.Round(), elapsed: d.Elapsed()}
		if err != nil {
			o.err = err.Error()
		}
		o.stats = stats.Stats
		time.Sleep(time.Second)
		for _, l := range logs {
			o.received += " " + string(rune('0'+len(l.Log().Requests)))
		}
	})
	return o
}

// same plays a trace with a client and with a session.
func (tr trace) same(t *testing.T, key apikey.Key, p policy.Policy) outcome {
	t.Helper()
	r := ordersIf()
	asClient := tr.run(t, key, func(host *udp.NetworkHost, servers []discovery.Server) (weir.Decision, weir.Stats, error) {
		c, err := weir.NewOn(host, weir.Config{Key: key, Servers: servers, Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		d, err := c.Acquire(context.Background(), r)
		synctest.Wait() // a send that failed is counted after the decision is told
		return d, c.Stats(), err
	})
	asSession := tr.run(t, key, func(host *udp.NetworkHost, servers []discovery.Server) (weir.Decision, weir.Stats, error) {
		s, err := session.New(session.Config{Servers: servers, Policy: p, Stack: host})
		if err != nil {
			t.Fatal(err)
		}
		s, d, err := session.Execute(context.Background(), s, key, r)
		stats := s.Stats()
		if _, closed := session.Close(s); closed != nil {
			t.Error(closed)
		}
		return d, stats, err
	})
	if asClient != asSession {
		t.Errorf("%+v under %v:\nclient  %+v\nsession %+v", tr, p, asClient, asSession)
	}
	return asSession
}

// The traces of the design notes: whoever is asked through a client or a session
// gives the same decision at the same instant, and gets as many datagrams.
func TestSessionIsAClientInTheTraces(t *testing.T) {
	const ms = time.Millisecond
	key := longKey(t, apikey.AuthAES)
	never := behavior{skipped: 1 << 16}
	for name, tt := range map[string]struct {
		trace trace
		by    string
	}{
		"healthy":             {trace{{delay: 5 * ms}, {delay: 3 * ms}}, "1000 in round 0 after 5ms"},
		"slow oldest, within": {trace{{delay: 15 * ms}, {delay: 3 * ms}}, "1000 in round 0 after 15ms"},
		"slow oldest, beyond": {trace{{delay: 25 * ms}, {delay: 3 * ms}}, "2000 in round 0 after 20ms"},
		"failed oldest":       {trace{never, {delay: 3 * ms}}, "2000 in round 0 after 20ms"},
		"all failed":          {trace{never, never}, ""},
	} {
		o := tt.trace.same(t, key, policy.Default())
		if want := "granted by server " + tt.by; tt.by != "" && o.decision != want || tt.by == "" && o.err == "" {
			t.Errorf("%s: %+v, want %s", name, o, want)
		}
	}
}

// The same for whatever may happen. No two things happen at the same instant: who
// would be first is left to the scheduler.
func TestSessionIsAClient(t *testing.T) {
	key := longKey(t, apikey.AuthAES)
	presets := []policy.Policy{policy.Default(), policy.StrictOldest(), policy.FastestValid(), policy.OldestPreferred()}
	decided := 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(1, seed))
		p := presets[random.IntN(len(presets))]
		if random.IntN(3) == 0 {
			p.CompletionDelivery = !p.CompletionDelivery
		}
		tr := make(trace, 1+random.IntN(4))
		for i := range tr {
			tr[i] = behavior{
				delay:   time.Duration(random.IntN(70))*time.Millisecond + time.Duration(i+1)*time.Microsecond,
				skipped: random.IntN(4),
				steer:   uint8(random.IntN(2)),
				broken:  random.IntN(6) == 0,
			}
			if random.IntN(3) == 0 {
				tr[i].deficit, tr[i].late = uint16(random.IntN(3)), uint32(random.IntN(500))
			}
		}
		if o := tr.same(t, key, p); o.err == "" {
			decided++
		}
	}
	if decided < 50 || decided > 140 {
		t.Errorf("%d of 150 were decided: too few or too many to tell", decided)
	}
}
