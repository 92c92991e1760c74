package core

import (
	"math"
	"math/bits"
	"net/netip"
	"strconv"
	"time"

	"github.com/weirhq/weir/ident"
)

// SendKind is why a datagram is sent. The zero value is none.
type SendKind uint8

// The kinds of sends.
const (
	SendFirst      SendKind = 1 + iota // a request's round 0
	SendReplay                         // the same bytes in a later round
	SendCompletion                     // the same bytes, to who had not answered when the request was decided, or the policy's delay was over
	SendReport                         // a latency report

	// SendKinds is one more than the last kind.
	SendKinds = 1 + iota
)

// String returns "first", "replay", "completion delivery" or "report".
func (k SendKind) String() string {
	switch k {
	case SendFirst:
		return "first"
	case SendReplay:
		return "replay"
	case SendCompletion:
		return "completion delivery"
	case SendReport:
		return "report"
	}
	return "SendKind(" + strconv.Itoa(int(k)) + ")"
}

// SendRef names a datagram that was to be sent, for [Core.HandleSendFailure].
type SendRef struct {
	Kind     SendKind  // as in [Send]
	Request  RequestID // 0 for a report
	Round    int       // 0 for a report; N+1 is the final interval, of completion delivery only
	Endpoint int       // of the request's membership, counted over all servers
}

// Send is a datagram to be sent.
type Send struct {
	Kind   SendKind       // why
	Ref    SendRef        // names this datagram
	Server ident.ServerID // whom it is for
	To     netip.AddrPort // where it goes
	// Until is the monotonic instant from which on it must not be sent any more:
	// the request's horizon, when servers begin to forget it and would take it for
	// a new one. A host that stalls before it writes, and then drops the datagram,
	// tells so with HandleSendFailure. [NoLimit] for a report.
	Until   time.Duration
	Payload []byte // in the caller's buffer; [wire.MaxDatagram] bytes suffice
}

// NoLimit is the Send.Until of what may be sent at any time: no instant is later.
const NoLimit = time.Duration(math.MaxInt64)

// pendingSend is one datagram to several endpoints.
type pendingSend struct {
	kind  SendKind
	f     *flight
	id    RequestID // f's, while it is still that request's record
	round int
	to    uint64 // servers
	next  int    // endpoint

	report *reportDatagram
}

// PollSend writes the next datagram to send into out and reports whether there
// was one. The payload goes to the beginning of out.Payload's array, which grows
// if it must. Nothing is given out at or past its request's horizon, and no
// replay once the request has a candidate.
func (c *Core) PollSend(now Time, out *Send) bool {
	t := c.advance(now)
	for p := c.sends.front(); p != nil; p = c.sends.front() {
		members, datagram, to, until := c.remaining(t, p)
		if to == 0 {
			c.dropSend()
			continue
		}
		for p.next < len(members.endpoints) {
			e := &members.endpoints[p.next]
			p.next++
			if to&serverBit(e.server) == 0 {
				continue
			}
			out.Kind = p.kind
			out.Ref = SendRef{Kind: p.kind, Request: p.id, Round: p.round, Endpoint: p.next - 1}
			out.Server = members.servers[e.server].ID
			out.To = e.addr
			out.Until = until
			out.Payload = append(out.Payload[:0], datagram...)
			c.sent(p)
			return true
		}
		c.dropSend()
	}
	return false
}

// sent counts a datagram that is given out, and for its request the round.
func (c *Core) sent(p *pendingSend) {
	c.stats.Sent[p.kind]++
	if p.kind == SendReplay && p.round > p.f.replayed {
		p.f.replayed = p.round
		p.f.replays++
	}
}

// remaining returns what is to be sent, to which servers it still may be, and
// until when.
func (c *Core) remaining(t time.Duration, p *pendingSend) (members *snapshot, datagram []byte, to uint64, until time.Duration) {
	if p.report != nil {
		return p.report.members, p.report.datagram, p.to, NoLimit
	}
	f := p.f
	if f.id != p.id || f.abandoned || t >= f.horizon {
		return nil, nil, 0, 0
	}
	if p.kind == SendReplay && f.phase != waiting {
		return nil, nil, 0, 0
	}
	return f.members, f.datagram, p.to, f.horizon
}

// dropSend removes the oldest pending send with all that is left of it.
func (c *Core) dropSend() {
	p := c.sends.front()
	if p.report != nil {
		c.freeReport(p.report)
	}
	c.sends.pop()
}

// endpointSet is a set of endpoints of a snapshot.
type endpointSet [maxEndpoints / 64]uint64

// add reports whether the endpoint was not yet in.
func (s *endpointSet) add(endpoint int) bool {
	word, bit := &s[endpoint/64], uint64(1)<<(endpoint%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

func (s *endpointSet) size() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
