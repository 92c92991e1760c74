package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// worst is the latency of what was never answered, and the longest that is told apart.
const worst = time.Second

// load asks a server at a rate, whether it answers or not: an open loop. A latency is from when a
// request was sent to when the system took in its answer. When the next is sent depends on nothing
// that the server does, so no stall of it is left out; by how much the sender itself was late, which
// the server has no part in, is told apart.
type load struct {
	conns  []udp.Conn
	to     netip.AddrPort
	key    *wire.Credential
	sealer *wire.Sealer
	random *mathrand.Rand

	readers sync.WaitGroup
	mu      sync.Mutex              // guards sent and seen
	sent    map[uint64]time.Time    // that have no answer yet
	seen    *hdrhistogram.Histogram // ns
	number  uint64
	wrong   atomic.Uint64
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(worst), 3)
}

// newLoad opens a load's sockets, each a flow.
func newLoad(to netip.AddrPort, key apikey.Key, flows int) (*load, error) {
	l := &load{to: to, sent: make(map[uint64]time.Time), seen: newHistogram(), random: mathrand.New(mathrand.NewPCG(1, 2))}
	var err error
	if l.key, err = wire.NewCredential(key); err != nil {
		return nil, err
	}
	if l.sealer, err = wire.NewSealer(rand.Reader); err != nil {
		return nil, err
	}
	for range flows {
		c, err := udp.Host().Listen(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0), udp.Options{Received: true})
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, c)
		l.readers.Go(func() { l.read(c) })
	}
	return l, nil
}

func (l *load) close() {
	for _, c := range l.conns {
		c.Close()
	}
	l.readers.Wait()
}

// result is how a load fared.
type result struct {
	asked, answered int
	seen            *hdrhistogram.Histogram
	late            *hdrhistogram.Histogram // by how much the sender was late
}

func (r *result) at(percentile float64) time.Duration {
	return time.Duration(r.seen.ValueAtPercentile(percentile))
}

// run asks for some time, at intervals that are exponential, and waits a little for the last answers.
func (l *load) run(ctx context.Context, rate float64, span time.Duration) (result, error) {
	l.mu.Lock()
	l.seen.Reset()
	clear(l.sent)
	l.mu.Unlock()
	r := result{late: newHistogram()}
	buf := make([]byte, 0, wire.BufferSize)
	next := time.Now()
	for end := next.Add(span); next.Before(end) && ctx.Err() == nil; r.asked++ {
		id, b, err := l.request(buf)
		if err != nil {
			return r, err
		}
		sleepUntil(next)
		now := time.Now()
		_ = r.late.RecordValue(max(1, int64(min(now.Sub(next), worst))))
		l.mu.Lock()
		l.sent[id] = now
		l.mu.Unlock()
		d := []udp.Datagram{{Buf: b, N: len(b), Peer: l.to}}
		if _, err := l.conns[r.asked%len(l.conns)].Write(d); err != nil {
			return r, fmt.Errorf("sending: %w", err)
		}
		next = next.Add(time.Duration(l.random.ExpFloat64() * float64(time.Second) / rate))
	}
	time.Sleep(200 * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.answered = r.asked - len(l.sent)
	for range l.sent {
		_ = l.seen.RecordValue(int64(worst))
	}
	clear(l.sent)
	r.seen = hdrhistogram.Import(l.seen.Export())
	if n := l.wrong.Load(); n > 0 {
		return r, fmt.Errorf("%d answers were wrong", n)
	}
	return r, ctx.Err()
}

// request makes a request for one token of one of some buckets.
func (l *load) request(buf []byte) (id uint64, b []byte, err error) {
	l.number++
	h := wire.Header{Timestamp: uint64(time.Now().UnixMilli())}
	binary.LittleEndian.PutUint64(h.UniqueID[:], l.number)
	if _, err := rand.Read(h.UniqueID[8:]); err != nil {
		return 0, nil, err
	}
	const window, limit = 1000, 1 << 30
	r := wire.Request{Layout: wire.Layout2, DedupTTL: 60, Resources: []wire.Resource{{
		Bucket: ident.ID{byte(l.number % 100)}, Window: window, Rate: limit, Tokens: 1,
	}}}
	b, err = l.key.AppendRequest(buf, l.sealer, &h, &r)
	return l.number, b, err
}

// read takes in answers until the socket is closed.
func (l *load) read(c udp.Conn) {
	ds := make([]udp.Datagram, 16)
	for i := range ds {
		ds[i].Buf = make([]byte, wire.MaxDatagram+1)
	}
	var scratch wire.Scratch
	for {
		n, err := c.Read(ds)
		now := time.Now()
		if udp.Closed(err) {
			return
		}
		for i := range ds[:n] {
			if ds[i].Received > 0 {
				now = time.Unix(0, ds[i].Received)
			}
			l.take(now, ds[i].Payload(), &scratch)
		}
	}
}

// take judges one answer. What is not an answer, or no grant, is wrong: the limit is never reached.
func (l *load) take(now time.Time, b []byte, scratch *wire.Scratch) {
	var e wire.Envelope
	var v wire.ResponseView
	err := wire.ParseEnvelope(b, &e)
	var pdu []byte
	if err == nil {
		pdu, err = l.key.Open(&e, scratch)
	}
	if err == nil {
		err = wire.ParseResponse(pdu, wire.Layout2, &v)
	}
	if err != nil || v.Resources() != 1 || v.Resource(0).Tokens != 0 {
		l.wrong.Add(1)
		return
	}
	id := binary.LittleEndian.Uint64(e.Header.UniqueID[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, ok := l.sent[id]
	if !ok {
		return // it comes after its slice has ended
	}
	delete(l.sent, id)
	_ = l.seen.RecordValue(max(1, int64(min(now.Sub(sent), worst))))
}
