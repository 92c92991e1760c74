package core

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// setFailFast takes the setting "fail-fast TIMEOUTS [PROBE] [again]" of a transcript.
func (tr *trace) setFailFast(args []string) (err error) {
	cfg := &tr.cfg.FailFast
	if last := len(args) - 1; args[last] == "again" {
		tr.again, args = true, args[:last]
	}
	if cfg.Timeouts, err = strconv.Atoi(args[0]); err != nil || len(args) == 1 {
		return err
	}
	cfg.Probe, err = time.ParseDuration(args[1])
	return err
}

// nameProbe names what is sent without having been submitted.
func (tr *trace) nameProbe(s Send) {
	if s.Kind != SendFirst {
		return
	}
	for _, r := range tr.requests {
		if r.id == s.Ref.Request {
			return
		}
	}
	tr.know(fmt.Sprintf("probe-%d", tr.core.Stats().Probes), s.Ref.Request)
}

func (tr *trace) sayFailFast(d time.Duration, k EventKind) {
	if k == EventRecovered {
		tr.sayf(d, "recovered")
		return
	}
	s, _ := tr.core.FailFast()
	tr.sayf(d, "failing fast after %d timeouts, the last: %s", s.Timeouts, saySeen(&s.Seen))
}

func TestFailFastConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg   FailFastConfig
		field string
	}{
		"negative":                {FailFastConfig{Timeouts: -1}, "FailFast.Timeouts"},
		"over 1<<30":              {FailFastConfig{Timeouts: 1<<30 + 1}, "FailFast.Timeouts"},
		"a probe in the horizon":  {FailFastConfig{Timeouts: 1, Probe: ms(60) - 1}, "FailFast.Probe"},
		"a probe in two years":    {FailFastConfig{Probe: 2 * maxRefresh}, "FailFast.Probe"},
		"a probe long ago":        {FailFastConfig{Probe: -1}, "FailFast.Probe"},
		"a probe at the horizon":  {FailFastConfig{Timeouts: 1 << 30, Probe: ms(60)}, ""},
		"a probe once in a year":  {FailFastConfig{Timeouts: 1, Probe: maxRefresh}, ""},
		"nothing":                 {FailFastConfig{}, ""},
		"timeouts, and no probes": {FailFastConfig{Timeouts: 1}, ""},
	} {
		_, err := New(Config{Key: testKey(t, apikey.AuthAES), Entropy: seeded(2), FailFast: tt.cfg})
		var bad *FieldError
		if tt.field == "" && err != nil || tt.field != "" && (!errors.As(err, &bad) || bad.Field != tt.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// By default a probe comes every second, or in every horizon that is longer.
func TestProbesByDefault(t *testing.T) {
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 1 << 30
	key, err := apikey.NewLegacy(apikey.AuthAES, 7, quotas, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[time.Duration]time.Duration{ms(20): time.Second, 2 * time.Second: 6 * time.Second} {
		c := newTestCore(t, 1, func(cfg *Config) {
			cfg.Key = key
			cfg.Policy = policy.Default()
			cfg.Policy.Unit = unit
			cfg.FailFast.Timeouts = 1
		})
		c.failFast.calm = maxMono
		timeOut(t, c, 0)
		now := c.mono
		next, ok := c.Deadline()
		if wait := next - now; !ok || wait < want || wait > want*3/2 {
			t.Errorf("a probe after %v, want %v and up to a half more", wait, want)
		}
	}
}

// timeOut submits a request at d and lets it time out.
func timeOut(t *testing.T, c *Core, d time.Duration) {
	t.Helper()
	if _, err := c.Submit(at(d), askOne()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d += c.Timeline().Horizon() / 3
		c.HandleTimer(at(d))
		drainSends(c, at(d))
	}
	if s := c.Stats(); s.InFlight != 0 {
		t.Fatalf("%+v", s)
	}
}

// failing returns a core that fails fast since 60 ms, by the first timeout, soon
// after another outage.
func failing(t *testing.T, servers int, change func(*Config)) *Core {
	t.Helper()
	c := newTestCore(t, servers, func(cfg *Config) {
		cfg.FailFast.Timeouts = 1
		if change != nil {
			change(cfg)
		}
	})
	c.failFast.calm = maxMono
	timeOut(t, c, 0)
	drainEvents(c)
	if s, ok := c.FailFast(); !ok || s.Since != at(ms(60)).Mono || s.Timeouts != 1 || s.Elapsed != ms(60) || s.Seen.Servers != servers {
		t.Fatalf("%+v, %v", s, ok)
	}
	return c
}

// nextProbe lets time pass until the next probe, and returns when that is and
// what is sent.
func nextProbe(t *testing.T, c *Core) (time.Duration, []Send) {
	t.Helper()
	due, ok := c.Deadline()
	if !ok {
		t.Fatal("no probe is due")
	}
	d := due - at(0).Mono
	c.HandleTimer(at(d))
	return d, drainSends(c, at(d))
}

// A probe takes nothing, whatever it is answered by, and nobody is told of it.
func TestProbe(t *testing.T) {
	c := failing(t, 2, func(cfg *Config) { cfg.MaxInFlight = 1 })
	d, sends := nextProbe(t, c)
	if len(sends) != 2 || sends[0].Kind != SendFirst || sends[0].Ref.Request == 0 {
		t.Fatalf("%+v", sends)
	}
	r := newResponder(t, c.cfg.Key)
	_, pdu := r.open(t, sends[0].Payload)
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		t.Fatal(err)
	}
	want := wire.Resource{Bucket: ident.Bucket("weir/probe", 1, 1), Window: 1, Rate: 1}
	if v.Guards() != 0 || v.Resources() != 1 || v.Resource(0) != want || len(v.Label()) != 0 {
		t.Errorf("a probe asks for %+v under %q", v.Resource(0), v.Label())
	}
	if c.Cancel(at(d), sends[0].Ref.Request) {
		t.Error("a probe was canceled")
	}
	if s := c.Stats(); s.Probes != 1 || s.InFlight != 0 || s.Kept != 0 || !s.FailingFast {
		t.Errorf("%+v", s)
	}
	if v := c.HandleDatagram(at(d), 1, r.answer(t, sends[0].Payload, serverID(0), reply{deficit: 1})); v != DatagramCounted {
		t.Error(v)
	}
	if events := drainEvents(c); len(events) != 1 || events[0].Kind != EventRecovered {
		t.Errorf("%+v", events)
	}
	if _, ok := c.FailFast(); ok {
		t.Error("still failing fast")
	}
	want2 := Decided{}
	if s := c.Stats(); s.Submitted != 1 || s.Outcomes != [SendFailed + 1]uint64{TimedOut: 1} || s.Decided != want2 ||
		s.FailingFast || s.InFlight != 0 || s.Kept != 1 || s.FailFastTrips != 1 {
		t.Errorf("%+v", s)
	}
	if next, ok := c.Deadline(); !ok || next != at(d+ms(60)).Mono {
		t.Errorf("a deadline at %v other than that of the probe's identity", next)
	}
	c.HandleTimer(at(d + ms(60)))
	if s := c.Stats(); s.Kept != 0 {
		t.Errorf("%+v", s)
	}
	if _, ok := c.Deadline(); ok {
		t.Error("there is something to do after all has ended")
	}
}

// A bound on requests in flight is not one on probes, nor the other way round.
func TestProbesTakeNoPlace(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) { cfg.MaxInFlight, cfg.FailFast.Timeouts = 1, 1 })
	c.failFast.calm = maxMono
	timeOut(t, c, 0)
	d, sends := nextProbe(t, c)
	r := newResponder(t, c.cfg.Key)
	if len(sends) != 1 {
		t.Fatalf("%d sends", len(sends))
	}
	c.HandleDatagram(at(d), 1, r.answer(t, sends[0].Payload, serverID(0), reply{}))
	if _, err := c.Submit(at(d), askOne()); err != nil {
		t.Error(err)
	}
	if _, err := c.Submit(at(d), askOne()); !errors.Is(err, ErrTooManyInFlight) {
		t.Error(err)
	}
}

// While failing fast requests fail without a datagram; those for nothing, wrong
// ones, and reports are treated as ever, and so are cores without servers.
func TestFailingFast(t *testing.T) {
	c := failing(t, 1, nil)
	for range 3 {
		if _, err := c.Submit(at(ms(70)), askOne()); !errors.Is(err, ErrFailFast) {
			t.Error(err)
		}
	}
	if _, err := c.Submit(at(ms(70)), &Request{}); err != nil {
		t.Error(err)
	}
	var bad *FieldError
	if _, err := c.Submit(at(ms(70)), &Request{Resources: make([]wire.Resource, 41)}); !errors.As(err, &bad) {
		t.Error(err)
	}
	if sends := drainSends(c, at(ms(70))); len(sends) != 0 {
		t.Errorf("%+v", sends)
	}
	if err := c.Report(at(ms(70)), observations(1)); err != nil {
		t.Error(err)
	}
	if sends := drainSends(c, at(ms(70))); len(sends) != 1 || sends[0].Kind != SendReport {
		t.Errorf("%+v", sends)
	}
	if s := c.Stats(); s.FailedFast != 3 || s.Submitted != 2 || s.Empty != 1 || !s.FailingFast {
		t.Errorf("%+v", s)
	}
	if err := c.SetMembership(at(ms(80)), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(at(ms(80)), askOne()); !errors.Is(err, ErrNoServers) {
		t.Error(err)
	}
	if _, sends := nextProbe(t, c); len(sends) != 0 {
		t.Errorf("nobody was probed with %+v", sends)
	}
	if next, _ := c.Deadline(); next < c.mono+time.Second {
		t.Errorf("with nobody to probe the next is due in %v", next-c.mono)
	}
}

// What ended undecided for other reasons leaves the row as it is; only timeouts
// lengthen it, and only decisions end it.
func TestRowOfTimeouts(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) { cfg.FailFast.Timeouts = 3 })
	r := newResponder(t, c.cfg.Key)
	d := time.Duration(0)
	submit := func() (RequestID, []byte) {
		id, err := c.Submit(at(d), askOne())
		if err != nil {
			t.Fatal(err)
		}
		return id, drainSends(c, at(d))[0].Payload
	}
	rest := func() { d += time.Second; c.HandleTimer(at(d)); drainSends(c, at(d)) }
	timeOut(t, c, d)
	rest()
	timeOut(t, c, d)
	rest()
	id, _ := submit()
	c.Cancel(at(d), id)
	rest()
	id, _ = submit()
	c.HandleSendFailure(at(d), SendRef{Kind: SendFirst, Request: id}, errors.New("unreachable"))
	rest()
	if _, err := c.Submit(at(d), &Request{}); err != nil {
		t.Error(err)
	}
	if _, ok := c.FailFast(); ok || c.failFast.row != 2 {
		t.Fatalf("after two timeouts, failing fast is %v, and the row %d", ok, c.failFast.row)
	}
	_, datagram := submit()
	c.HandleDatagram(at(d), 1, r.answer(t, datagram, serverID(0), reply{deficit: 1}))
	rest()
	for range 2 {
		timeOut(t, c, d)
		rest()
	}
	if _, ok := c.FailFast(); ok {
		t.Error("a rejection did not end the row")
	}
	timeOut(t, c, d)
	if _, ok := c.FailFast(); !ok {
		t.Error("three timeouts in a row")
	}
}

// Requests that asked the servers of before a recovery say nothing about those
// of after it.
func TestRequestsOfBeforeTheRecovery(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) { cfg.FailFast.Timeouts = 2 })
	for i := range 10 {
		if _, err := c.Submit(at(ms(i)), askOne()); err != nil {
			t.Fatal(err)
		}
	}
	drainSends(c, at(ms(9)))
	c.HandleTimer(at(ms(61))) // two have timed out
	if s, ok := c.FailFast(); !ok || s.Timeouts != 2 {
		t.Fatalf("%+v, %v", s, ok)
	}
	if err := c.SetMembership(at(ms(62)), testServers(2)[1:]); err != nil {
		t.Fatal(err)
	}
	d, sends := nextProbe(t, c)
	if d != ms(62) || sends[0].Server != serverID(1) {
		t.Fatalf("a probe at %v to %v", d, sends[0].Server)
	}
	r := newResponder(t, c.cfg.Key)
	c.HandleDatagram(at(ms(63)), 1, r.answer(t, sends[0].Payload, serverID(1), reply{}))
	c.HandleTimer(at(ms(100)))
	if s := c.Stats(); s.Outcomes[TimedOut] != 10 || s.FailingFast || s.FailFastTrips != 1 {
		t.Errorf("%+v", s)
	}
	timeOut(t, c, ms(101))
	timeOut(t, c, ms(201))
	if s := c.Stats(); s.FailFastTrips != 2 {
		t.Errorf("later ones do: %+v", s)
	}
}

// While the membership changes all the time, there is one probe at a time, and
// none is forgotten.
func TestProbesOfAChangingMembership(t *testing.T) {
	c := failing(t, 3, nil)
	for i := range 20 {
		d := ms(70 + i)
		if err := c.SetMembership(at(d), testServers(3)[:1+i%2]); err != nil {
			t.Fatal(err)
		}
		if when, sends := nextProbe(t, c); when != d || len(sends) != 1+i%2 {
			t.Errorf("change %d at %v: probed at %v with %d datagrams", i, d, when, len(sends))
		}
		if s := c.Stats(); s.InFlight != 0 || s.Kept != i || s.Probes != uint64(i+1) {
			t.Errorf("%+v", s)
		}
	}
	for c.failFast.probe != nil || c.table.used > 0 {
		due, _ := c.Deadline()
		c.HandleTimer(Time{Mono: due, Wall: 1})
		drainSends(c, Time{Mono: due, Wall: 1})
	}
	if s := c.Stats(); s.Kept != 0 || s.Outcomes[TimedOut] != 1 || s.Canceled != 0 || !s.FailingFast {
		t.Errorf("%+v", s)
	}
	if events := drainEvents(c); slices.ContainsFunc(events, func(ev Event) bool { return ev.Kind == EventCompleted }) {
		t.Errorf("a probe was announced: %+v", events)
	}
}

// The time between probes is random and within its bounds, and two cores of one
// seed agree on it.
func TestProbesAreJittered(t *testing.T) {
	intervals := func() (found []time.Duration) {
		c := failing(t, 1, func(cfg *Config) { cfg.FailFast.Probe = ms(100) })
		last := ms(60)
		for len(found) < 50 {
			before := c.Stats().Probes
			d, _ := nextProbe(t, c)
			if c.Stats().Probes > before {
				found = append(found, d-last)
				last = d
			}
		}
		return found
	}
	all := intervals()
	if again := intervals(); !slices.Equal(all, again) {
		t.Errorf("%v, then %v", all, again)
	}
	if all[0] == ms(100) {
		t.Error("the first probe comes after exactly its interval")
	}
	first := all[1:]
	least, most := slices.Min(first), slices.Max(first)
	if least < ms(100) || most > ms(150) || least > ms(110) || most < ms(140) {
		t.Errorf("from %v to %v", least, most)
	}
}

// A probe that times out is no request, but what it saw is the news.
func TestProbeTimesOut(t *testing.T) {
	c := failing(t, 1, nil)
	nextProbe(t, c)
	if err := c.SetMembership(Time{Mono: c.mono, Wall: 1}, testServers(3)); err != nil {
		t.Fatal(err)
	}
	for d, _ := nextProbe(t, c); c.failFast.probe != nil; {
		d += ms(20)
		c.HandleTimer(at(d))
	}
	if s, ok := c.FailFast(); !ok || s.Timeouts != 1 || s.Elapsed != ms(60) || s.Seen.Servers != 3 || s.Since != at(ms(60)).Mono {
		t.Errorf("%+v, %v", s, ok)
	}
}

// A probe of a membership that was replaced before anything was sent is not sent.
func TestProbeIsReplacedUnsent(t *testing.T) {
	c := failing(t, 1, nil)
	due, _ := c.Deadline()
	c.HandleTimer(Time{Mono: due, Wall: 1})
	if err := c.SetMembership(Time{Mono: due, Wall: 1}, testServers(2)[1:]); err != nil {
		t.Fatal(err)
	}
	if _, sends := nextProbe(t, c); len(sends) != 1 || sends[0].Server != serverID(1) {
		t.Errorf("%+v", sends)
	}
	if n := c.Stats().Probes; n != 2 {
		t.Errorf("%d probes", n)
	}
}

// A decision of a request that was under way ends it, and the probe under way is
// of no more consequence.
func TestRecoveryByARequest(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) {
		cfg.FailFast = FailFastConfig{Timeouts: 1, Probe: ms(60)}
	})
	c.failFast.calm = maxMono
	if _, err := c.Submit(at(0), askOne()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(at(ms(50)), askOne()); err != nil {
		t.Fatal(err)
	}
	late := drainSends(c, at(ms(50)))[1].Payload
	c.HandleTimer(at(ms(60)))
	c.failFast.next = at(ms(61)).Mono // an early probe, as of a changed membership
	c.HandleTimer(at(ms(61)))
	r := newResponder(t, c.cfg.Key)
	c.HandleDatagram(at(ms(62)), 1, r.answer(t, late, serverID(0), reply{deficit: 1}))
	if s := c.Stats(); s.FailingFast || s.Probes != 1 || s.Kept != 1 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
	c.HandleTimer(at(ms(130))) // the probe times out
	if s := c.Stats(); s.FailingFast || s.FailFastTrips != 1 || s.Kept != 0 || c.failFast.row != 0 {
		t.Errorf("%+v", s)
	}
}

// A closed core probes no more.
func TestCloseWhileFailingFast(t *testing.T) {
	for _, probing := range []bool{false, true} {
		c := failing(t, 1, nil)
		if probing {
			nextProbe(t, c)
		}
		c.Close(at(time.Minute))
		if _, err := c.Submit(at(time.Minute), askOne()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if at, ok := c.Deadline(); ok {
			t.Errorf("a deadline at %v", at)
		}
		if s := c.Stats(); s.FailingFast || s.InFlight != 0 || s.Kept != 0 {
			t.Errorf("%+v", s)
		}
		if sends := drainSends(c, at(time.Minute)); len(sends) != 0 {
			t.Errorf("%+v", sends)
		}
		for _, f := range c.flights.all {
			if f.pins != 0 {
				t.Error("a record is held")
			}
		}
	}
}

// Without entropy there is no probe, and the next one tries again.
func TestProbeWithoutEntropy(t *testing.T) {
	broken := errors.New("broken source")
	const identities = 24 + 16 // of New, and of the request
	source := io.MultiReader(io.LimitReader(seeded(2), identities), iotest.ErrReader(broken))
	c := failing(t, 1, func(cfg *Config) { cfg.Entropy = source })
	for range 2 {
		if _, sends := nextProbe(t, c); len(sends) != 0 {
			t.Errorf("%+v", sends)
		}
	}
	if s := c.Stats(); s.Probes != 0 || s.Kept != 0 || !s.FailingFast {
		t.Errorf("%+v", s)
	}
	if held := len(c.flights.all) - len(c.flights.free); held != 0 {
		t.Errorf("%d records are held", held)
	}
	c.cfg.Entropy = seeded(4)
	if _, sends := nextProbe(t, c); len(sends) != 1 {
		t.Errorf("%+v", sends)
	}
}
