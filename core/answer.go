package core

import (
	"errors"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// HandleDatagram judges what socket s received. b is neither kept nor changed.
// Who sent it plays no part: an answer is told by its identity, its
// authentication and its server ID (docs/protocol.md, "Discovery").
//
// A decision of the same request whose instant is at or before now is made
// first, with the candidate then held. The end of a round without a candidate is
// not: an answer handed in at the start of round k, before the timer, is one of
// round k.
func (c *Core) HandleDatagram(now Time, s SocketID, b []byte) DatagramVerdict {
	t := c.advance(now)
	if wire.ParseEnvelope(b, &c.envelope) != nil {
		c.stats.Datagrams[DatagramMalformed]++
		return DatagramMalformed
	}
	f := c.table.get(&c.envelope.Header.UniqueID)
	v := c.judge(t, f, s)
	c.envelope, c.response = wire.Envelope{}, wire.ResponseView{} // views into b
	c.stats.Datagrams[v]++
	return v
}

// judge names the verdict on the datagram in c.envelope, which names request f,
// if that is known, and lets the request take it.
func (c *Core) judge(t time.Duration, f *flight, s SocketID) DatagramVerdict {
	if f == nil {
		if c.envelope.Auth != c.credential.Auth() {
			return DatagramMode
		}
		return DatagramUnknown
	}
	expired := t >= f.horizon
	if f.phase == holding && f.decideAt <= t {
		c.decide(t, f)
		if expired {
			return DatagramExpired // the record is that of no request any more
		}
	}
	if expired {
		f.saw(DatagramExpired)
		return DatagramExpired
	}
	server, v := c.validate(f)
	if v.Valid() {
		if c.envelope.Header.Steering == 0 {
			c.advise(t, s)
		}
		v = f.rank(server)
		if f.owing && f.missing() == 0 {
			c.acquit(f)
		}
	}
	f.saw(v)
	if v == DatagramCounted {
		c.take(t, f, server)
	}
	return v
}

// validate opens and reads the datagram and finds out which server of the
// snapshot answers with it what f asked; [DatagramCounted] stands for yes. It
// leaves the response in c.response and how its blocks pair in c.pairing.
func (c *Core) validate(f *flight) (server int, v DatagramVerdict) {
	pdu, err := c.credential.Open(&c.envelope, &c.scratch)
	if errors.Is(err, wire.ErrMode) {
		return 0, DatagramMode
	}
	if err != nil { // wire.ErrAuth, there is no other
		return 0, DatagramForged
	}
	kind, err := wire.PDUKind(pdu)
	if err != nil {
		return 0, DatagramMalformed
	}
	if kind != wire.KindResponse {
		return 0, DatagramNotAnswer
	}
	server = f.members.index(ident.ServerID(c.envelope.Header.KeyID))
	if server < 0 {
		return 0, DatagramStranger
	}
	if wire.ParseResponse(pdu, c.cfg.Layout, &c.response) != nil {
		return 0, DatagramMalformed
	}
	if !f.asked.match(&c.response, &c.pairing) {
		return 0, DatagramMismatch
	}
	return server, DatagramCounted
}

// rank tells whether a valid answer of a server counts, and uses up its turn.
func (f *flight) rank(server int) DatagramVerdict {
	if f.answered&serverBit(server) != 0 {
		return DatagramDuplicate
	}
	f.answered |= serverBit(server)
	if f.phase == ended {
		return DatagramLate
	}
	return DatagramCounted
}

// saw counts a verdict for the completion.
func (f *flight) saw(v DatagramVerdict) {
	if f.phase != ended {
		f.seen.Datagrams[v]++
	}
}

// take makes an answer that counts the candidate, if it is the oldest so far,
// and decides if there is nothing to wait for.
func (c *Core) take(t time.Duration, f *flight, server int) {
	if f.phase == holding && server > f.candidate {
		return
	}
	round := c.timeline.RoundAt(t - f.t0)
	if f.phase == waiting {
		f.decideAt = f.t0 + c.timeline.PreferenceEnd(round)
	}
	f.phase = holding
	f.candidate = server
	f.candidateRound = round
	c.record(f)
	if server == 0 || f.decideAt <= t {
		c.decide(t, f)
		return
	}
	c.heap.set(f, f.decideAt)
}

// record writes the answer in c.response down as f's, in the request's order.
func (c *Core) record(f *flight) {
	v := &c.response
	f.keepPort = c.envelope.Header.Steering != 0
	f.granted = true
	f.guards, f.resources = f.guards[:0], f.resources[:0]
	for i, asked := range f.asked.guards {
		g := v.Guard(int(c.pairing.guards[i]))
		passed := g.Latency < g.Threshold && g.Latency < asked.threshold
		f.granted = f.granted && passed
		f.guards = append(f.guards, GuardResult{Latency: g.Latency, Passed: passed})
	}
	for i := range f.asked.resources {
		r := v.Resource(int(c.pairing.resources[i]))
		f.granted = f.granted && r.Tokens == 0
		f.resources = append(f.resources, ResourceResult{ActualRate: r.Rate, Deficit: r.Tokens})
	}
}
