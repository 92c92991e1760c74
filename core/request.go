package core

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weirhq/weir/wire"
)

// Request is what [Core.Submit] asks: all guards and all resources are decided
// as one. A request for nothing at all is granted at once and asks nobody.
// Latency of a guard is ignored, BufferSize too in layout 2.
type Request struct {
	Guards    []wire.Guard    // trackers whose latency must be below a threshold
	Resources []wire.Resource // buckets and how many tokens of each
	Label     string          // metrics label, any bytes
}

// Submit starts a request at now: it encodes and seals it once, keeps nothing of
// r, and wants it sent to every endpoint of every server known now. Exactly one
// [EventCompleted] follows, unless the request is canceled or the core closed.
//
// Errors, after which nothing was started: [ErrClosed], *[FieldError],
// [ErrNoServers] (a core with a domain then looks again by itself, at most once
// a second), [ErrFailFast], [ErrTooManyInFlight], or of the entropy source. A
// request for nothing fails with ErrClosed only.
func (c *Core) Submit(now Time, r *Request) (RequestID, error) {
	t := c.advance(now)
	if c.closed {
		return 0, ErrClosed
	}
	if len(r.Guards) == 0 && len(r.Resources) == 0 {
		return c.grantEmpty(t)
	}
	if err := c.check(r); err != nil {
		return 0, err
	}
	if len(c.members.servers) == 0 {
		c.forceDiscovery(t)
		return 0, ErrNoServers
	}
	if c.failFast.failing {
		c.stats.FailedFast++
		return 0, ErrFailFast
	}
	if c.inFlight >= c.cfg.MaxInFlight {
		return 0, ErrTooManyInFlight
	}
	f := c.flights.get()
	if f == nil {
		return 0, ErrTooManyInFlight
	}
	f.pins++ // the table's
	if err := c.encode(f, r); err != nil {
		c.flights.unpin(f)
		return 0, err
	}
	c.begin(t, f)
	c.inFlight++
	c.stats.Submitted++
	return f.id, nil
}

// Cancel ends a request without a completion and reports whether it was still
// undecided; the completion of a decided one is, or was, with PollEvent. Late
// answers are heard for their steering advice as ever.
func (c *Core) Cancel(now Time, id RequestID) bool {
	t := c.advance(now)
	f := c.flights.find(id)
	if c.closed || f == nil || f.probe || f.phase != waiting && f.phase != holding {
		return false
	}
	c.stats.Canceled++
	f.abandoned = true
	c.end(t, f)
	return true
}

// check refuses what breaks the key's quotas or does not fit a datagram.
func (c *Core) check(r *Request) error {
	quotas := c.cfg.Key.Quotas()
	if c.cfg.Layout == wire.Layout1 {
		for i := range r.Guards {
			if size := r.Guards[i].BufferSize; size > quotas.LatencyBufferSize {
				return &FieldError{fmt.Sprintf("Guards[%d].BufferSize", i), fmt.Sprintf(
					"%d samples are over the key's quota of %d", size, quotas.LatencyBufferSize)}
			}
		}
	}
	for i := range r.Resources {
		if window := r.Resources[i].Window; window > quotas.RateWindow {
			return &FieldError{fmt.Sprintf("Resources[%d].Window", i), fmt.Sprintf(
				"%d ms are over the key's quota of %d ms", window, quotas.RateWindow)}
		}
	}
	size := wire.RequestSize(c.credential.Auth(), c.cfg.Layout, len(r.Guards), len(r.Resources), len(r.Label))
	if size > wire.MaxDatagram {
		return &FieldError{"Request", fmt.Sprintf(
			"%d guards, %d resources and a label of %d bytes are more than a datagram of %d bytes has room for; ask for less at once",
			len(r.Guards), len(r.Resources), len(r.Label), wire.MaxDatagram)}
	}
	return nil
}

// encode draws the identity and seals the datagram, once for all sends.
func (c *Core) encode(f *flight, r *Request) error {
	uid, err := c.newIdentity()
	if err != nil {
		return err
	}
	f.uid = uid
	f.asked.set(r)
	c.header = wire.Header{UniqueID: uid, Timestamp: uint64(c.wall)}
	outgoing := wire.Request{ // on the stack: the caller's slices are not kept
		Layout: c.cfg.Layout, DedupTTL: c.timeline.HorizonMs(),
		Guards: r.Guards, Resources: r.Resources, Label: r.Label,
	}
	f.datagram, err = c.credential.AppendRequest(f.datagram[:0], c.sealer, &c.header, &outgoing)
	if err != nil {
		return fmt.Errorf("core: encoding a request: %w", err)
	}
	return nil
}

// begin enters a request or probe that is encoded.
func (c *Core) begin(t time.Duration, f *flight) {
	c.seq++
	f.seq = c.seq
	f.phase = waiting
	f.members = c.members
	f.t0 = t
	f.horizon = t + c.timeline.Horizon()
	f.seen = Seen{Servers: len(f.members.servers), Endpoints: len(f.members.endpoints)}
	f.malformedBefore = c.stats.Datagrams[DatagramMalformed]
	f.unknownBefore = c.stats.Datagrams[DatagramUnknown]
	c.table.put(f)
	c.heap.set(f, t+c.timeline.Start(1))
	c.sends.push(pendingSend{kind: SendFirst, f: f, id: f.id, to: math.MaxUint64})
}

// newIdentity draws an identity that no request here has. It is shaped like a
// random UUID (version 4), which is no part of the protocol.
func (c *Core) newIdentity() (wire.UniqueID, error) {
	const attempts = 4 // a source that repeats itself this often is broken
	uid := &c.header.UniqueID
	for range attempts {
		if _, err := io.ReadFull(c.cfg.Entropy, uid[:]); err != nil {
			return wire.UniqueID{}, fmt.Errorf("core: Entropy: reading %d bytes for an identity: %w", len(uid), err)
		}
		uid[6] = uid[6]&0x0f | 0x40
		uid[8] = uid[8]&0x3f | 0x80
		if c.table.get(uid) == nil {
			return *uid, nil
		}
	}
	return wire.UniqueID{}, fmt.Errorf("core: Entropy: the source gave the identity of a request in flight %d times; it is not random", attempts)
}

// grantEmpty decides the request for nothing, which needs nobody.
func (c *Core) grantEmpty(t time.Duration) (RequestID, error) {
	f := c.flights.get()
	if f == nil {
		return 0, ErrTooManyInFlight
	}
	f.t0 = t
	c.stats.Submitted++
	c.stats.Empty++
	f.conclude(t, Granted, nil)
	c.announce(f)
	return f.id, nil
}
