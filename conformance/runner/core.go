package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// PlayCore tells a core in virtual time the inputs of a trace, at exactly their
// instants, and returns all of its events: the inputs, with what the core made of
// the answers, and the core's outputs. They are those of the trace, to the last
// one, if the core is right. Timers that are due before an input fire first, those
// of the same instant after it.
func PlayCore(t *conformance.Trace) ([]conformance.Event, error) {
	p, err := newCorePlay(t)
	if err != nil {
		return nil, err
	}
	for i := range t.Events {
		if t.Events[i].Output() {
			continue
		}
		if err := p.input(t.Events[i]); err != nil {
			return nil, fmt.Errorf("at %v: %w", time.Duration(t.Events[i].At), err)
		}
	}
	for p.err == nil && p.core.Stats().InFlight+p.core.Stats().Kept > 0 {
		deadline, _ := p.core.Deadline()
		p.timersBefore(deadline - origin + 1)
	}
	return p.events, p.err
}

// origin is the monotonic reading at the beginning of a play.
const origin = time.Hour

// corePlay is a core, and the world around it.
type corePlay struct {
	trace  *conformance.Trace
	core   *core.Core
	scribe *scribe
	events []conformance.Event
	err    error

	at       time.Duration
	zone     *conformance.Zone // nil if members are told by hand
	requests map[core.RequestID]string
	sent     map[string][]byte // the request datagrams, by name
	report   string            // whose datagrams are polled
	steers   bool              // some answer advises another port
	socket   core.SocketID     // the one that sends
	via      map[string]core.SocketID
}

func newCorePlay(t *conformance.Trace) (*corePlay, error) {
	auth := apikey.AuthAES
	if t.Auth != "any" {
		var err error
		if auth, err = apikey.ParseAuth(t.Auth); err != nil {
			return nil, err
		}
	}
	key, err := keyFor(auth, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		return nil, err
	}
	numbers, err := t.Policy.Policy()
	if err != nil {
		return nil, err
	}
	p := &corePlay{trace: t, requests: map[core.RequestID]string{}, sent: map[string][]byte{}, socket: 1, via: map[string]core.SocketID{}}
	if p.scribe, err = newScribe(t, key, rand.NewChaCha8([32]byte{2})); err != nil {
		return nil, err
	}
	cfg := core.Config{Key: key, Policy: numbers, Layout: wire.Layout(t.Layout), Entropy: rand.NewChaCha8([32]byte{3})}
	for i := range t.Events {
		if t.Events[i].DNS != nil && p.zone == nil {
			cfg.Domain = domain
			p.zone = initialZone(t)
		}
		p.steers = p.steers || t.Events[i].Answer != nil && t.Events[i].Answer.ChangePort
	}
	if p.core, err = core.New(cfg); err != nil {
		return nil, err
	}
	if p.zone != nil {
		p.core.HandleTimer(p.now())
		p.drain()
		return p, p.err
	}
	err = p.setMembers(t.Members)
	return p, err
}

// initialZone has the members that are known at the beginning.
func initialZone(t *conformance.Trace) *conformance.Zone {
	z := &conformance.Zone{TTL: 300}
	for i := range t.Events {
		if e := &t.Events[i]; e.DNS != nil && e.At == 0 {
			return e.DNS // what it is from the very beginning
		}
		if t.Events[i].DNS != nil {
			z.TTL = 1 // the change is to be seen
		}
	}
	for _, name := range t.Members {
		id, _ := ident.ParseServerID(t.Server(name).ID)
		z.Records = append(z.Records, conformance.Target{Label: id.Label(), At: name})
	}
	return z
}

func (p *corePlay) now() core.Time {
	const wall = 1_796_000_000_000
	return core.Time{Mono: origin + p.at, Wall: wall + p.at.Milliseconds()}
}

// input lets timers run until an input, and hands it in.
func (p *corePlay) input(e conformance.Event) error {
	p.timersBefore(time.Duration(e.At))
	p.at = time.Duration(e.At)
	p.say(e)
	last := &p.events[len(p.events)-1]
	var err error
	switch {
	case e.Submit != nil:
		err = p.submit(e.Submit)
	case e.Report != nil:
		err = p.sendReport(e.Report)
	case e.Answer != nil:
		counts := *e.Answer
		last.Answer = &counts
		counts.Counts, err = p.answer(e.Answer)
	case e.Members != nil:
		err = p.setMembers(e.Members.Servers)
	case e.DNS != nil:
		p.zone = e.DNS
	}
	p.drain()
	return errors.Join(err, p.err)
}

// timersBefore fires, each at its exact instant, the timers before d.
func (p *corePlay) timersBefore(d time.Duration) {
	for p.err == nil {
		deadline, ok := p.core.Deadline()
		if !ok || deadline-origin >= d {
			return
		}
		p.at = max(deadline-origin, p.at)
		p.core.HandleTimer(p.now())
		p.drain()
	}
}

func (p *corePlay) submit(s *conformance.Submit) error {
	r := core.Request{Label: s.ID}
	l := wire.Layout(p.trace.Layout)
	for i := range s.Guards {
		r.Guards = append(r.Guards, encodeGuard(&s.Guards[i], l))
	}
	for i := range s.Resources {
		r.Resources = append(r.Resources, encodeResource(&s.Resources[i]))
	}
	id, err := p.core.Submit(p.now(), &r)
	switch {
	case errors.Is(err, core.ErrNoServers):
		p.say(conformance.Event{Fail: &conformance.Fail{Request: s.ID, Reason: "no_servers"}})
		return nil
	case err != nil:
		return err
	}
	p.requests[id] = s.ID
	return nil
}

func (p *corePlay) sendReport(r *conformance.Report) error {
	var obs []wire.Observation
	for i := range r.Observations {
		obs = append(obs, encodeObservation(&r.Observations[i], wire.Layout(p.trace.Layout)))
	}
	p.report = r.ID
	return p.core.Report(p.now(), obs)
}

func (p *corePlay) answer(a *conformance.Answer) (string, error) {
	b, err := p.scribe.answer(a, p.sent[a.Of])
	if err != nil {
		return "", err
	}
	switch v := p.core.HandleDatagram(p.now(), p.via[a.Of], b); v {
	case core.DatagramCounted, core.DatagramLate, core.DatagramDuplicate:
		return v.String(), nil
	default:
		return "ignored", nil
	}
}

func (p *corePlay) setMembers(names []string) error {
	var servers []core.Server
	for _, name := range names {
		id, err := p.scribe.id(name)
		if err != nil {
			return err
		}
		servers = append(servers, core.Server{ID: id, Endpoints: p.endpoints(name)})
	}
	return p.core.SetMembership(p.now(), servers)
}

// endpoints are a server's addresses in virtual time.
func (p *corePlay) endpoints(name string) []netip.AddrPort {
	var all []netip.AddrPort
	i := slices.IndexFunc(p.trace.Servers, func(s conformance.Server) bool { return s.Name == name })
	for k := range max(1, p.trace.Servers[i].Addresses) {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + 10*i + k)}), uint16(1000+i)))
	}
	return all
}

// drain takes what the core wants sent, and what it tells.
func (p *corePlay) drain() {
	var out core.Send
	for p.core.PollSend(p.now(), &out) {
		p.saySend(&out)
	}
	var ev core.Event
	for p.core.PollEvent(&ev) {
		switch ev.Kind {
		case core.EventCompleted:
			p.sayCompletion(&ev.Completion)
		case core.EventLookup:
			p.lookUp(ev.Lookup)
		case core.EventSteer:
			p.core.Rebound(p.now(), ev.Socket, p.socket+1)
			p.socket++
		}
		for p.core.PollSend(p.now(), &out) {
			p.saySend(&out)
		}
	}
}

func (p *corePlay) saySend(out *core.Send) {
	to, address := p.whose(out.To)
	s := conformance.Send{To: to, Address: address}
	if p.steers {
		port := int(p.socket - 1)
		s.Port = &port
	}
	switch out.Kind {
	case core.SendReport:
		s.Report, s.Why = p.report, "report"
		p.say(conformance.Event{Send: &s})
		return
	case core.SendFirst:
		s.Why = "first"
	case core.SendReplay:
		s.Why = "replay"
	default:
		s.Why = "delivery"
	}
	s.Request = p.requests[out.Ref.Request]
	if first := p.sent[s.Request]; first == nil {
		p.sent[s.Request] = slices.Clone(out.Payload)
		p.via[s.Request] = p.socket
	} else if !slices.Equal(first, out.Payload) {
		p.err = fmt.Errorf("the %s of %s to %s has other bytes than the first", s.Why, s.Request, to)
	}
	p.say(conformance.Event{Send: &s})
}

// whose finds the server that has an endpoint.
func (p *corePlay) whose(to netip.AddrPort) (name string, address int) {
	for _, s := range p.trace.Servers {
		if i := slices.Index(p.endpoints(s.Name), to); i >= 0 {
			return s.Name, i
		}
	}
	p.err = fmt.Errorf("a datagram to %v, where nobody is", to)
	return "", 0
}

func (p *corePlay) sayCompletion(c *core.Completion) {
	name := p.requests[c.Request]
	switch c.Outcome {
	case core.Granted, core.Rejected:
		d := conformance.Decide{Request: name, Granted: c.Outcome == core.Granted}
		for _, s := range p.trace.Servers {
			if c.Server != 0 && s.ID == c.Server.String() {
				d.By = s.Name
			}
		}
		p.say(conformance.Event{Decide: &d})
	case core.TimedOut:
		p.say(conformance.Event{Fail: &conformance.Fail{Request: name, Reason: "timeout"}})
	default:
		p.err = fmt.Errorf("%s ended as %v: %w", name, c.Outcome, c.Err)
	}
}

func (p *corePlay) say(e conformance.Event) {
	e.At = int64(p.at)
	p.events = append(p.events, e)
}

// lookUp answers a lookup at once with what the zone says.
func (p *corePlay) lookUp(l core.Lookup) {
	ttl := time.Duration(p.zone.TTL) * time.Second
	var failure error
	if p.zone.Fails {
		failure = errors.New("the zone fails")
	}
	if l.Kind == core.LookupSRV {
		a := core.SRVAnswer{TTL: ttl, Err: failure}
		for _, r := range p.zone.Records {
			port := p.endpoints(r.At)[0].Port()
			if r.PortZero {
				port = 0
			}
			a.Records = append(a.Records, core.SRV{Target: r.Label + "." + domain, Port: port})
		}
		p.core.HandleSRV(p.now(), l.ID, a)
		return
	}
	found := map[netip.Addr]bool{}
	for _, r := range p.zone.Records {
		if !strings.EqualFold(r.Label+"."+domain, l.Name) {
			continue
		}
		for _, text := range r.Addresses {
			found[netip.MustParseAddr(text)] = true
		}
		for _, e := range p.endpoints(r.At) {
			if len(r.Addresses) == 0 {
				found[e.Addr()] = true
			}
		}
	}
	addrs := slices.SortedFunc(maps.Keys(found), netip.Addr.Compare)
	p.core.HandleAddrs(p.now(), l.ID, core.AddrAnswer{Addrs: addrs, TTL: ttl, Err: failure})
}

// domain is where the servers of a play are found.
const domain = "c-7.conformance.test"

// CheckCore plays a trace with the core ([PlayCore]) and says what it did that is
// not in the trace, or the other way round; nil if nothing.
func CheckCore(t *conformance.Trace) error {
	events, err := PlayCore(t)
	if err != nil {
		return err
	}
	for i := range min(len(events), len(t.Events)) {
		if !reflect.DeepEqual(events[i], t.Events[i]) {
			return fmt.Errorf("event %d is to be %s, and is %s", i, sayEvent(&t.Events[i]), sayEvent(&events[i]))
		}
	}
	if len(events) != len(t.Events) {
		return fmt.Errorf("%d events came, %d are to come", len(events), len(t.Events))
	}
	return nil
}

func sayEvent(e *conformance.Event) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
