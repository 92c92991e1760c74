package doctor

import (
	"context"
	"net/netip"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// How datagrams are spread and waited for.
const (
	plainGap    = 20 * time.Millisecond
	fanGap      = time.Millisecond
	minPatience = time.Second // for an answer
	maxPatience = 2 * time.Second
	briefTTL    = 10 // ms: the least that a key's quota can be
)

// How many questions there are of each kind, besides those for the round trip.
const (
	longs  = 4
	guards = 3
	again  = 3 // plain ones to an address that was silent
)

// prober asks one address, with a socket and identities that no other address
// shares, so that what comes in is this address's doing.
type prober struct {
	cfg        *Config
	server     ident.ServerID
	endpoint   *Endpoint
	horizon    time.Duration
	ttl        uint32 // ms, that a client would ask for
	credential *wire.Credential
	sealer     *wire.Sealer
	scratch    wire.Scratch

	conn      udp.Conn
	arrivals  chan arrival
	questions []*question
	asked     map[wire.UniqueID]*question
	bestRTT   time.Duration
	unsent    int  // questions that could not be sent
	knocked   bool // ICMP said what the endpoint's state is
	proven    bool // that plain questions are dropped where others are answered
}

// examine asks the address everything, and leaves what it did in the endpoint.
func (p *prober) examine(ctx context.Context) error {
	ep := p.endpoint
	local := netip.IPv4Unspecified()
	if ep.Addr.Addr().Is6() {
		local = netip.IPv6Unspecified()
	}
	var err error
	if p.conn, err = p.cfg.Stack.Listen(netip.AddrPortFrom(local, 0), udp.Options{ReadBuffer: 1 << 20}); err != nil {
		ep.State, ep.Error = NoFamily, plainError(err)
		if outOfFiles(err) {
			ep.State = NoFiles
		}
		return nil
	}
	ep.Local = p.conn.LocalAddr().Port()
	p.asked = make(map[wire.UniqueID]*question)
	p.arrivals = make(chan arrival, 64)
	done := make(chan struct{})
	go p.read(done)
	defer func() {
		p.conn.Close()
		close(done)
	}()

	if err := p.ask(ctx, p.patience(), plainGap, nil, times(p.cfg.Probes, question{kind: plain, ttl: p.ttl})...); err != nil {
		return err
	}
	if p.answered(plain) == 0 && p.unsent < len(p.questions) {
		err = p.silent(ctx)
	}
	if err == nil && p.answered(plain) > 0 {
		err = p.further(ctx)
	}
	p.sum()
	ep.State = p.state()
	return err
}

// further asks an address that answers for long datagrams and for guards.
func (p *prober) further(ctx context.Context) error {
	ep := p.endpoint
	more := append(times(longs, question{kind: long, ttl: p.ttl}), times(guards, question{kind: guarded, ttl: p.ttl})...)
	if err := p.ask(ctx, p.patience(), plainGap, nil, more...); err != nil {
		return err
	}
	if p.answered(long) == 0 {
		if _, err := p.dropped(ctx, question{kind: plain, ttl: p.ttl}, question{kind: long, ttl: p.ttl}); err != nil {
			return err
		}
	}
	if p.answered(guarded) == 0 {
		if _, err := p.dropped(ctx, question{kind: other, ttl: p.ttl}, question{kind: guarded, ttl: p.ttl}); err != nil {
			return err
		}
		o := p.tally(other)
		ep.OtherLayout = &o
	}
	l, g := p.tally(long), p.tally(guarded)
	ep.Long, ep.Guards = &l, &g
	return nil
}

// patience is how long an answer is waited for.
func (p *prober) patience() time.Duration { return patience(p.horizon) }

// patience is how long an answer is waited for under a policy with this horizon.
func patience(horizon time.Duration) time.Duration {
	return min(max(minPatience, horizon), maxPatience)
}

func times(n int, q question) []question {
	qs := make([]question, n)
	for i := range qs {
		qs[i] = q
	}
	return qs
}

// ask sends questions one after the other and waits until all are answered,
// enough says so, or patience has passed since the last was sent. What cannot be
// sent is noted in the endpoint; the error is of the machine.
func (p *prober) ask(ctx context.Context, patience, gap time.Duration, enough func() bool, qs ...question) error {
	first := len(p.questions)
	finished := func() bool {
		if enough != nil && enough() {
			return true
		}
		for _, q := range p.questions[first:] {
			if !q.answered {
				return false
			}
		}
		return true
	}
	for i := range qs {
		q := &qs[i]
		if err := q.seal(p.credential, p.sealer, p.cfg.Entropy, p.cfg.Client.Layout, p.cfg.Now()); err != nil {
			return err
		}
		p.questions = append(p.questions, q)
		p.asked[q.id] = q
		p.send(q)
		if i < len(qs)-1 {
			p.listen(ctx, gap, func() bool { return enough != nil && enough() })
		}
		if ended(ctx) || enough != nil && enough() {
			return nil
		}
	}
	p.listen(ctx, patience, finished)
	return nil
}

// ended reports whether there is no more time.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

func (p *prober) send(q *question) {
	q.sent = p.cfg.Now()
	d := []udp.Datagram{{Buf: q.datagram, N: len(q.datagram), Peer: p.endpoint.Addr}}
	if _, err := p.conn.Write(d); err != nil {
		p.unsent++
		p.endpoint.State, p.endpoint.Error = refusal(err), plainError(err)
	}
}

// listen takes what comes in until a time has passed, or finished says so.
func (p *prober) listen(ctx context.Context, d time.Duration, finished func() bool) {
	over := time.NewTimer(d)
	defer over.Stop()
	for !finished() {
		select {
		case a := <-p.arrivals:
			p.take(a)
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// read hands in what comes in until the socket is closed.
func (p *prober) read(done <-chan struct{}) {
	for d := range udp.Datagrams(p.conn, wire.MaxDatagram+1) {
		a := arrival{b: append([]byte(nil), d.Payload()...), from: d.Peer, at: p.cfg.Now()}
		select {
		case p.arrivals <- a:
		case <-done:
			return
		}
	}
}
