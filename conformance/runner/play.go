package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

const (
	helloWithin = 20 * time.Second       // for a process to start, and to find its servers
	comfort     = 25 * time.Millisecond  // between two instants whose order matters
	comfortable = 240 * time.Millisecond // between two instants of the policy
	uncertain   = 18 * time.Millisecond  // below that much margin nothing is judged in real time
	longestPlay = 15 * time.Second
	tooLate     = 2 * time.Second // for what has no deadline of its own
)

// stretch returns by how much a trace's times are multiplied in real time, and
// whether it can be played there at all.
func stretch(t *conformance.Trace) (scale int64, ok bool) {
	if t.Real {
		return 1, true
	}
	p, err := t.Policy.Policy()
	if err != nil || t.Margin <= 0 {
		return 0, false
	}
	line, err := p.Compile()
	if err != nil {
		return 0, false
	}
	most := maxDedupTTL * int64(time.Millisecond) / int64(line.Horizon())
	scale = min(max(upTo(comfort, t.Margin), upTo(comfortable, int64(shortestGap(line)))), most)
	length := t.Events[len(t.Events)-1].At
	if scale < 1 || scale*t.Margin < int64(uncertain) || scale*length > int64(longestPlay) {
		return 0, false
	}
	return scale, true
}

// upTo is by how much least is to be multiplied to come to enough.
func upTo(enough time.Duration, least int64) int64 { return (int64(enough) + least - 1) / least }

// asked is a request or report of a play, and all that was seen of it.
type asked struct {
	submit *conformance.Submit
	report *conformance.Report
	at     int64     // of the trace
	told   time.Time // when the client was told
	anchor time.Time // when its first datagram came; offsets count from here

	uid   wire.UniqueID
	first []byte
	began map[string]netip.AddrPort // where the first datagram came from, by server
	from  map[string]netip.AddrPort // and the last one
	any   netip.AddrPort
	sends []*datagram
	ends  []spoken // decided, failed or reported
}

// play is one trace, played with one client in real time.
type play struct {
	trace *conformance.Trace
	scale int64
	in    inspector
	world *world
	seal  bool // every send must have the same bytes

	began  time.Time
	asked  map[string]*asked
	order  []*asked
	byUID  map[wire.UniqueID]*asked
	nonces map[string]wire.UniqueID
	todo   []action
	late   time.Duration // the worst lateness of an action
	lines  chan spoken
	client Client
}

// action is something that the runner does at an instant.
type action struct {
	at time.Time
	do func() error
}

// errGone ends a play whose client can no longer be talked to. The findings say why.
var errGone = errors.New("the client is gone")

// newPlay makes the play of a trace that can be played, for a client with these
// abilities.
func newPlay(stack udp.Stack, t *conformance.Trace, scale int64, auth apikey.Auth, sameBytes bool) (*play, apikey.Key, error) {
	key, err := keyFor(auth, rand.Reader)
	if err != nil {
		return nil, key, err
	}
	numbers := t.Policy
	numbers.Unit *= scale
	p, err := numbers.Policy()
	if err != nil {
		return nil, key, err
	}
	line, err := p.Compile()
	if err != nil {
		return nil, key, err
	}
	s, err := newScribe(t, key, rand.Reader)
	if err != nil {
		return nil, key, err
	}
	w, err := newWorld(stack, t)
	if err != nil {
		return nil, key, err
	}
	w.dns.set(initialZone(t))
	return &play{
		trace: t, scale: scale, world: w, seal: sameBytes,
		in:    inspector{scribe: s, layout: wire.Layout(t.Layout), dedup: line.HorizonMs()},
		asked: map[string]*asked{}, byUID: map[wire.UniqueID]*asked{}, nonces: map[string]wire.UniqueID{},
		lines: make(chan spoken, 64),
	}, key, nil
}

// configure is the command that makes the client of a play.
func (p *play) configure(key apikey.Key) conformance.Command {
	numbers := p.trace.Policy
	numbers.Unit *= p.scale
	return conformance.Command{
		Cmd: "configure", Key: key.Encode(), Domain: domain, Nameserver: p.world.dns.conn.LocalAddr().String(),
		Policy: &numbers, Layout: p.trace.Layout,
	}
}

// greet begins to listen to a client, until the context ends, and awaits its first line.
func (p *play) greet(ctx context.Context, client Client) error {
	p.client = client
	go listenTo(ctx, client, p.lines)
	_, err := p.expect(ctx, "hello")
	return err
}

// run plays with a client that is to be configured so, and returns when the trace
// is over and nothing can come any more. The findings are the inspector's.
func (p *play) run(ctx context.Context, client Client, c conformance.Command) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.greet(ctx, client); err != nil {
		return err
	}
	if err := p.tell(c); err != nil {
		return err
	}
	if _, err := p.expect(ctx, "ready"); err != nil {
		return err
	}
	p.began = time.Now()
	for i := range p.trace.Events {
		p.plan(&p.trace.Events[i])
	}
	err := p.loop(ctx)
	if err == nil {
		p.judge()
	}
	return err
}

// expect waits for one event, which must be the next.
func (p *play) expect(ctx context.Context, event string) (conformance.Reply, error) {
	patience := time.NewTimer(helloWithin)
	defer patience.Stop()
	for {
		select {
		case l := <-p.lines:
			switch {
			case l.err != nil:
				p.in.fail("lines", secLines, fmt.Sprintf("the event %q", event), "%v", sayEnd(l.err))
				return l.reply, errGone
			case l.reply.Event != event:
				p.in.fail("lines", secLines, fmt.Sprintf("the event %q", event), "%q %s", l.reply.Event, l.reply.Text)
				return l.reply, errGone
			}
			return l.reply, nil
		case d := <-p.world.packets:
			p.in.fail("lines", secLines, "no datagram before the first submit or report", "%d bytes to %s", len(d.data), d.server)
		case <-patience.C:
			p.in.fail("lines", secLines, fmt.Sprintf("the event %q", event), "nothing for %v", helloWithin)
			return conformance.Reply{}, errGone
		case <-ctx.Done():
			return conformance.Reply{}, context.Cause(ctx)
		}
	}
}

func sayEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the end of its output")
	}
	return err
}

func (p *play) tell(c conformance.Command) error {
	if err := conformance.WriteLine(p.client, c); err != nil {
		p.in.fail("lines", secLines, "a client that reads its standard input", "%v", err)
		return errGone
	}
	return nil
}

// plan puts what an event wants done among the actions. Answers wait for the
// datagram of their request.
func (p *play) plan(e *conformance.Event) {
	at := p.began.Add(time.Duration(e.At * p.scale))
	switch {
	case e.Submit != nil:
		a := p.knowAbout(e.Submit.ID, &asked{submit: e.Submit, at: e.At})
		p.schedule(at, func() error {
			a.told = time.Now()
			return p.tell(conformance.Command{Cmd: "submit", ID: e.Submit.ID, Label: e.Submit.ID, Guards: e.Submit.Guards, Resources: e.Submit.Resources})
		})
	case e.Report != nil:
		a := p.knowAbout(e.Report.ID, &asked{report: e.Report, at: e.At})
		p.schedule(at, func() error {
			a.told = time.Now()
			return p.tell(conformance.Command{Cmd: "report", ID: e.Report.ID, Observations: e.Report.Observations})
		})
	case e.DNS != nil && e.At > 0:
		p.schedule(at, func() error {
			p.world.dns.set(e.DNS)
			return nil
		})
	}
}

func (p *play) knowAbout(id string, a *asked) *asked {
	a.began, a.from = map[string]netip.AddrPort{}, map[string]netip.AddrPort{}
	p.asked[id] = a
	p.order = append(p.order, a)
	return a
}

func (p *play) schedule(at time.Time, do func() error) {
	i, _ := slices.BinarySearchFunc(p.todo, at, func(a action, at time.Time) int {
		if a.at.After(at) {
			return 1
		}
		return -1
	})
	p.todo = slices.Insert(p.todo, i, action{at, do})
}

// loop does what is to be done, and takes in what comes, until all is over.
func (p *play) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := p.over()
		if len(p.todo) > 0 && p.todo[0].at.Before(next) {
			next = p.todo[0].at
		}
		timer.Reset(time.Until(next))
		select {
		case d := <-p.world.packets:
			p.receive(&d)
		case l := <-p.lines:
			if err := p.hear(l); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			now := time.Now()
			for len(p.todo) > 0 && !p.todo[0].at.After(now) {
				do := p.todo[0]
				p.todo = p.todo[1:]
				p.late = max(p.late, time.Since(do.at))
				if err := do.do(); err != nil {
					return err
				}
			}
			if len(p.todo) == 0 && !now.Before(p.over()) {
				return nil
			}
		}
	}
}

// over is when the last request has reached its horizon, and all that is still
// under way has come.
func (p *play) over() time.Time {
	end := p.began
	for _, a := range p.order {
		from := a.anchor
		if from.IsZero() {
			from = a.told
		}
		if from.IsZero() {
			from = p.began.Add(time.Duration(a.at * p.scale))
		}
		until := from.Add(p.horizon() + p.tolerance().late)
		if len(a.ends) == 0 { // say so, but not for ever
			until = until.Add(tooLate)
		}
		if until.After(end) {
			end = until
		}
	}
	return end
}

func (p *play) horizon() time.Duration {
	t := p.timeline()
	return t.Horizon()
}

// hear takes in a line of the client.
func (p *play) hear(l spoken) error {
	if l.err != nil {
		p.in.fail("lines", secLines, "a client that goes on until it is told to quit", "%v", sayEnd(l.err))
		return errGone
	}
	switch l.reply.Event {
	case "decided", "failed", "reported":
	default:
		p.in.fail("lines", secLines, "decided, failed or reported", "%q %s", l.reply.Event, l.reply.Text)
		return errGone
	}
	a := p.asked[l.reply.ID]
	if a == nil {
		p.in.fail("lines", secLines, "the id of a command", "%q", l.reply.ID)
		return nil
	}
	a.ends = append(a.ends, l)
	return nil
}
