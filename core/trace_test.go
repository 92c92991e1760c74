package core

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// TestTraces replays testdata/traces, where testdata/README.md tells how they
// are written. `go test ./core -run TestTraces -rewrite` writes what comes out.
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "trace" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			tr := &trace{t: t, cfg: Config{Key: testKey(t, apikey.AuthAES), Entropy: seeded(2)}, requests: map[string]*traced{}}
			for i, line := range strings.Split(d.Input, "\n") {
				line, _, _ = strings.Cut(line, "#")
				if err := tr.line(strings.Fields(line)); err != nil {
					d.Fatalf(t, "line %d: %v", i+1, err)
				}
			}
			tr.finish()
			return tr.out.String()
		})
	})
}

// trace is a core that is driven by a script, and the transcript of it.
type trace struct {
	t    *testing.T
	cfg  Config
	core *Core
	out  strings.Builder

	servers   []Server // what the core is told before the script's first event
	responder *responder
	requests  map[string]*traced
	lookups   []Lookup      // that were started
	manual    bool          // timers run only where the script says so
	hold      bool          // sends are polled only where the script says so
	unread    bool          // events are polled only where the script says so
	wall      time.Duration // how far the wall clock was stepped
	again     bool          // an outage has just ended: the first probe of the next has to wait
}

// traced is a request of the script, and what must hold for it in every script.
type traced struct {
	id       RequestID
	datagram []byte
	oldest   ident.ServerID
	horizon  time.Duration
	replays  map[int]bool // the rounds
	ended    bool
}

// at is the instant of an event.
func (tr *trace) at(d time.Duration) Time {
	now := at(d)
	now.Wall += tr.wall.Milliseconds()
	return now
}

// line runs one line: a setting, or "<time> <verb> <arguments>".
func (tr *trace) line(words []string) error {
	if len(words) == 0 {
		return nil
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		if tr.core != nil {
			return fmt.Errorf("setting %q comes after the first event", words[0])
		}
		return tr.set(words[0], words[1:])
	}
	if tr.core == nil {
		if err := tr.start(); err != nil {
			return err
		}
	}
	if len(words) < 2 {
		return errors.New("a time without an event")
	}
	if !tr.manual {
		tr.timersBefore(d)
	}
	if err := tr.event(d, words[1], words[2:]); err != nil {
		return err
	}
	tr.drain(d)
	return nil
}

// set takes a setting of the core.
func (tr *trace) set(name string, args []string) (err error) {
	text := strings.Join(args, " ")
	switch name {
	case "policy":
		tr.cfg.Policy, err = policy.Parse(text)
	case "servers":
		tr.servers, err = parseServers(args)
	case "auth":
		var auth apikey.Auth
		if auth, err = apikey.ParseAuth(text); err == nil {
			tr.cfg.Key = testKey(tr.t, auth)
		}
	case "domain":
		tr.cfg.Domain = text
	case "grace":
		tr.cfg.Refresh.Grace, err = time.ParseDuration(text)
	case "interval":
		tr.cfg.Refresh.Interval, err = time.ParseDuration(text)
	case "limits":
		_, err = fmt.Sscan(text, &tr.cfg.Limits.Servers, &tr.cfg.Limits.Addresses, &tr.cfg.Limits.Endpoints)
	case "in-flight":
		tr.cfg.MaxInFlight, err = strconv.Atoi(text)
	case "fail-fast":
		return tr.setFailFast(args)
	case "manual-timers":
		tr.manual = true
	case "hold-sends":
		tr.hold = true
	case "hold-events":
		tr.unread = true
	case "layout":
		_, err = fmt.Sscan(text, &tr.cfg.Layout)
	default:
		return fmt.Errorf("unknown setting %q", name)
	}
	return err
}

func (tr *trace) start() (err error) {
	if tr.core, err = New(tr.cfg); err != nil {
		return err
	}
	if tr.again {
		tr.core.failFast.calm = maxMono
	}
	tr.responder = newResponder(tr.t, tr.cfg.Key)
	if len(tr.servers) > 0 {
		if err := tr.core.SetMembership(at(0), tr.servers); err != nil {
			return err
		}
		drainEvents(tr.core)
	}
	return nil
}

// timersBefore fires, each at its exact instant, the timers before d: at one
// instant a runtime hands in datagrams first.
func (tr *trace) timersBefore(d time.Duration) {
	for {
		deadline, ok := tr.core.Deadline()
		if !ok || deadline >= at(d).Mono {
			return
		}
		then := max(deadline-at(0).Mono, 0)
		tr.core.HandleTimer(tr.at(then))
		tr.drain(then)
	}
}

// finish lets the requests in flight end.
func (tr *trace) finish() {
	for !tr.manual && tr.core.heap.min() != nil {
		then := tr.core.heap.min().deadline - at(0).Mono
		tr.timersBefore(then + 1)
	}
	if s := tr.core.Stats(); !tr.manual && s.InFlight+s.Kept > 0 {
		tr.t.Errorf("%d requests are in flight and %d identities kept when all has ended", s.InFlight, s.Kept)
	}
}

// sayf writes a line of the transcript.
func (tr *trace) sayf(d time.Duration, format string, args ...any) {
	fmt.Fprintf(&tr.out, "%6v  %s\n", d, fmt.Sprintf(format, args...))
}

// drain writes down what the core wants sent, and what it tells.
func (tr *trace) drain(d time.Duration) {
	if !tr.hold {
		tr.pollSends(d)
	}
	if !tr.unread {
		tr.pollEvents(d)
	}
}

func (tr *trace) pollSends(d time.Duration) {
	for _, s := range drainSends(tr.core, tr.at(d)) {
		tr.checkSend(&s)
		tr.saySend(d, s)
	}
}

func (tr *trace) pollEvents(d time.Duration) {
	for _, ev := range drainEvents(tr.core) {
		if ev.Kind == EventCompleted {
			tr.checkCompletion(&ev.Completion)
		}
		tr.sayEvent(d, ev)
	}
}

// checkSend holds what every datagram of a request is to: the same bytes, and
// none at or after the horizon.
func (tr *trace) checkSend(s *Send) {
	r := tr.requests[tr.name(s.Ref.Request)]
	if r == nil {
		return
	}
	if !bytes.Equal(s.Payload, r.datagram) {
		tr.t.Errorf("%v of %s in round %d has other bytes than were sealed", s.Kind, tr.name(r.id), s.Ref.Round)
	}
	if s.Until != r.horizon || tr.core.mono >= r.horizon {
		tr.t.Errorf("%v of %s until %v at %v; the horizon is %v", s.Kind, tr.name(r.id), s.Until, tr.core.mono, r.horizon)
	}
	if s.Kind == SendReplay {
		r.replays[s.Ref.Round] = true
	}
}

// checkCompletion holds what every completion is to: one for a request, which
// tells what happened.
func (tr *trace) checkCompletion(done *Completion) {
	r := tr.requests[tr.name(done.Request)]
	if r == nil {
		return
	}
	if r.ended {
		tr.t.Errorf("a second completion of %s", tr.name(r.id))
	}
	r.ended = true
	decided := done.Server != 0
	if done.Replays != len(r.replays) || done.Oldest != (decided && done.Server == r.oldest) {
		tr.t.Errorf("%s tells of %d replays and oldest %v, but there were %d, and the oldest is %v: %+v",
			tr.name(r.id), done.Replays, done.Oldest, len(r.replays), r.oldest, done)
	}
	if rounds := tr.core.Timeline().Rounds(); done.Final != (done.Round == rounds) {
		tr.t.Errorf("%s tells of round %d of %d, final %v", tr.name(r.id), done.Round, rounds, done.Final)
	}
}

var sendWords = map[SendKind]string{
	SendFirst: "send", SendReplay: "replay", SendCompletion: "complete-deliver", SendReport: "report",
}

func (tr *trace) saySend(d time.Duration, s Send) {
	tr.nameProbe(s)
	whom := serverName(s.Server)
	for _, m := range tr.core.Membership() {
		if m.ID == s.Server && len(m.Endpoints) > 1 {
			whom += " " + s.To.String()
		}
	}
	switch s.Kind {
	case SendReport:
		tr.sayf(d, "report to %s, %d bytes", whom, len(s.Payload))
	case SendReplay:
		tr.sayf(d, "replay %s round %d to %s", tr.name(s.Ref.Request), s.Ref.Round, whom)
	default:
		tr.sayf(d, "%s %s to %s", sendWords[s.Kind], tr.name(s.Ref.Request), whom)
	}
}

func (tr *trace) sayEvent(d time.Duration, ev Event) {
	switch ev.Kind {
	case EventCompleted:
		tr.sayCompletion(d, &ev.Completion)
	case EventLookup:
		tr.lookups = append(tr.lookups, ev.Lookup)
		tr.sayf(d, "lookup %d %v of %s", ev.Lookup.ID, ev.Lookup.Kind, ev.Lookup.Name)
	case EventCancelLookup:
		tr.sayf(d, "cancel lookup %d", ev.Lookup.ID)
	case EventSteer:
		tr.sayf(d, "steer socket %d", ev.Socket)
	case EventMembershipChanged:
		tr.sayf(d, "membership %s%s", sayServers(ev.Membership), saySkipped(ev.Discovered.Skipped))
	case EventDiscoveryFailed:
		tr.sayf(d, "discovery failed: %v%s", ev.Err, saySkipped(ev.Discovered.Skipped))
	case EventFailingFast, EventRecovered:
		tr.sayFailFast(d, ev.Kind)
	default:
		tr.t.Fatalf("event of kind %v", ev.Kind)
	}
}

func (tr *trace) sayCompletion(d time.Duration, done *Completion) {
	name := tr.name(done.Request)
	switch done.Outcome {
	case TimedOut:
		tr.sayf(d, "abandon %s after %v: %s", name, done.Elapsed, saySeen(&done.Seen))
	case SendFailed:
		tr.sayf(d, "fail %s after %v: %v; %s", name, done.Elapsed, done.Err, saySeen(&done.Seen))
	default:
		interval := fmt.Sprintf("round %d", done.Round)
		if done.Round == tr.core.Timeline().Rounds() {
			interval = "the final interval"
		}
		by := serverName(done.Server)
		if len(done.Resources)+len(done.Guards) == 0 {
			by = "nobody"
		}
		if !done.KeepPort {
			by += ", change port,"
		}
		tr.sayf(d, "decide %s %v by %s in %s after %v", name, done.Outcome, by, interval, done.Elapsed)
	}
}

func saySeen(s *Seen) string {
	words := []string{fmt.Sprintf("%d servers asked", s.Servers)}
	if s.SendFailures > 0 {
		words = append(words, fmt.Sprintf("%d sends failed", s.SendFailures))
	}
	for v, n := range s.Datagrams {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %v", n, DatagramVerdict(v)))
		}
	}
	return strings.Join(words, ", ")
}

func saySkipped(s Skipped) string {
	if s == (Skipped{}) {
		return ""
	}
	return fmt.Sprintf(" (skipped %+v)", s)
}

func sayServers(servers []Server) string {
	if len(servers) == 0 {
		return "nobody"
	}
	var words []string
	for _, s := range servers {
		var addrs []string
		for _, e := range s.Endpoints {
			addrs = append(addrs, e.String())
		}
		words = append(words, serverName(s.ID)+"="+strings.Join(addrs, ","))
	}
	return strings.Join(words, " ")
}

// name returns what the script calls a request.
func (tr *trace) name(id RequestID) string {
	for name, r := range tr.requests {
		if r.id == id {
			return name
		}
	}
	return fmt.Sprintf("request %d", id)
}

// serverName names servers A, B, C, … in the order of age.
func serverName(id ident.ServerID) string {
	for i := range 26 {
		if serverID(i) == id {
			return string(rune('A' + i))
		}
	}
	return id.String()
}

func serverNamed(name string) (ident.ServerID, error) {
	if len(name) != 1 || name[0] < 'A' || name[0] > 'Z' {
		return 0, fmt.Errorf("%q is no server; they are called A to Z", name)
	}
	return serverID(int(name[0] - 'A')), nil
}

// parseServers reads "A" (at an address of its own) or "A=ip:port,ip:port".
func parseServers(words []string) ([]Server, error) {
	var servers []Server
	for _, word := range words {
		name, addrs, given := strings.Cut(word, "=")
		id, err := serverNamed(name)
		if err != nil {
			return nil, err
		}
		if !given {
			addrs = fmt.Sprintf("192.0.2.%d:29292", name[0]-'A'+1)
		}
		s := Server{ID: id}
		for _, text := range strings.Split(addrs, ",") {
			addr, err := netip.ParseAddrPort(text)
			if err != nil {
				return nil, err
			}
			s.Endpoints = append(s.Endpoints, addr)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// observations makes n observations of one tracker.
func observations(n int) []wire.Observation {
	obs := make([]wire.Observation, n)
	for i := range obs {
		obs[i] = wire.Observation{
			Tracker: ident.Tracker("inventory", 10_000, 100, 5), TTL: 10_000, MaxSamples: 100, MinSamples: 5, Latency: uint32(i),
		}
	}
	return obs
}
