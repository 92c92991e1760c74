package roundtrip

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// memory is for how many timeouts a question is remembered, to know a late answer and a
// repeat.
const memory = 4

// prober asks one address, with a socket that no other address shares, so that what comes
// in is this address's doing. All but read is one goroutine's.
type prober struct {
	cfg        *Config
	path       *Path
	schedule   schedule
	entropy    io.Reader
	credential *wire.Credential
	sealer     *wire.Sealer
	scratch    wire.Scratch
	datagram   []byte

	conn     udp.Conn
	arrivals chan arrival
	asked    map[wire.UniqueID]*question
	order    []*question // of asked, by the time sent
}

// arrival is a datagram that came in.
type arrival struct {
	b  []byte
	at time.Time
}

// run asks everything and leaves in the path what became of it. The error is that of want
// of randomness.
func (p *prober) run(ctx context.Context, begin time.Time) error {
	if !p.listen() {
		return nil
	}
	p.asked = make(map[wire.UniqueID]*question)
	p.arrivals = make(chan arrival, 256)
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { p.read(done) })
	err := p.loop(ctx, begin)
	p.conn.Close()
	close(done)
	reading.Wait()
	p.sum(p.cfg.Now())
	return err
}

// listen opens the socket. If it cannot, the path says why.
func (p *prober) listen() bool {
	local := netip.IPv4Unspecified()
	if p.path.Addr.Addr().Is6() {
		local = netip.IPv6Unspecified()
	}
	conn, err := p.cfg.Stack.Listen(netip.AddrPortFrom(local, 0), udp.Options{ReadBuffer: 1 << 20})
	if err != nil {
		p.path.Unsent, p.path.Error = p.schedule.all-p.schedule.warm, err.Error()
		return false
	}
	p.conn = conn
	return true
}

// loop asks when it is time, and takes what comes in, until all that was asked is
// answered or lost.
func (p *prober) loop(ctx context.Context, begin time.Time) error {
	next, due := 0, begin.Add(p.schedule.due(0))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := p.cfg.Now()
		wake := due
		switch {
		case ctx.Err() != nil:
			return nil
		case next < p.schedule.all && !now.Before(due):
			if err := p.ask(due, next < p.schedule.warm); err != nil {
				return err
			}
			next++
			due = begin.Add(p.schedule.due(next))
			p.forget(now)
			p.takeAll()
			continue
		case next == p.schedule.all:
			last, open := p.open(now)
			if !open {
				p.takeAll() // what came in before the end, and was not looked at yet
				return nil
			}
			wake = last
		}
		timer.Reset(wake.Sub(now))
		select {
		case a := <-p.arrivals:
			p.take(a)
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// ask sends one question, which was due at a time.
func (p *prober) ask(due time.Time, warm bool) error {
	id, datagram, err := p.seal()
	if err != nil {
		return err
	}
	q := &question{id: id, sent: p.cfg.Now(), warm: warm}
	if _, err := p.conn.Write([]udp.Datagram{{Buf: datagram, N: len(datagram), Peer: p.path.Addr}}); err != nil {
		if !warm {
			p.path.Unsent++
			p.path.Error = err.Error()
		}
		return nil
	}
	p.asked[id] = q
	p.order = append(p.order, q)
	if !warm {
		p.path.Asked++
		p.path.Lag = max(p.path.Lag, q.sent.Sub(due))
	}
	return nil
}

// open reports whether an answer may still come in time, and until when.
func (p *prober) open(now time.Time) (until time.Time, open bool) {
	for i := len(p.order) - 1; i >= 0; i-- {
		q := p.order[i]
		until := q.sent.Add(p.cfg.Timeout)
		if now.After(until) {
			break
		}
		if !q.answered {
			return until.Add(1), true
		}
	}
	return time.Time{}, false
}

// forget lets go of questions that were sent long ago.
func (p *prober) forget(now time.Time) {
	for len(p.order) > 0 && now.Sub(p.order[0].sent) > memory*p.cfg.Timeout {
		delete(p.asked, p.order[0].id)
		p.order = p.order[1:]
	}
}

// sum takes back the questions that an interruption has left open.
func (p *prober) sum(now time.Time) {
	for _, q := range p.order {
		if !q.answered && !q.warm && now.Sub(q.sent) <= p.cfg.Timeout {
			p.path.Asked--
		}
	}
}

// takeAll takes what has come in.
func (p *prober) takeAll() {
	for {
		select {
		case a := <-p.arrivals:
			p.take(a)
		default:
			return
		}
	}
}

// read hands in what comes in until the socket is closed.
func (p *prober) read(done <-chan struct{}) {
	for d := range udp.Datagrams(p.conn, wire.MaxDatagram+1) {
		a := arrival{b: append([]byte(nil), d.Payload()...), at: p.cfg.Now()}
		select {
		case p.arrivals <- a:
		case <-done:
			return
		}
	}
}
