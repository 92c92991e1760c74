package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	generator "github.com/weirhq/weir/internal/load"
	"github.com/weirhq/weir/wire"
)

// roundTrip asks once, and returns when it has the answer.
type roundTrip func() error

// newAcquire is the client that people use, with one server.
func newAcquire(ctx context.Context, s *subject, key apikey.Key) (roundTrip, func(), error) {
	client, err := weir.New(weir.Config{Key: key, Servers: []discovery.Server{{ID: s.id, Addrs: []netip.AddrPort{s.addr}}}})
	if err != nil {
		return nil, nil, err
	}
	request := weir.Request{Resources: []weir.Resource{weir.Bucket("bench", 1_000_000_000, time.Second).Take(1)}}
	return func() error {
		d, err := client.Acquire(ctx, request)
		if err == nil && !d.Granted() {
			err = fmt.Errorf("denied")
		}
		return err
	}, func() { client.Close() }, nil
}

// newBare is the least that a round trip with the same crypto can be in Go: a connected socket, one
// system call each way, and what comes is opened and held against what was asked.
func newBare(s *subject, key apikey.Key) (roundTrip, func(), error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.addr))
	if err != nil {
		return nil, nil, err
	}
	credential, err := wire.NewCredential(key)
	if err != nil {
		return nil, nil, err
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	var (
		n        uint64
		out      = make([]byte, 0, wire.BufferSize)
		in       = make([]byte, wire.BufferSize)
		scratch  wire.Scratch
		envelope wire.Envelope
		view     wire.ResponseView
		prefix   [8]byte
	)
	if _, err := rand.Read(prefix[:]); err != nil {
		return nil, nil, err
	}
	request := wire.Request{Layout: wire.Layout2, DedupTTL: 60, Resources: []wire.Resource{{
		Bucket: ident.Bucket("bench", 1000, 1_000_000_000), Window: 1000, Rate: 1_000_000_000, Tokens: 1,
	}}}
	return func() error {
		n++
		h := wire.Header{Timestamp: uint64(time.Now().UnixMilli())}
		copy(h.UniqueID[:], prefix[:])
		binary.LittleEndian.PutUint64(h.UniqueID[8:], n)
		b, err := credential.AppendRequest(out, sealer, &h, &request)
		if err != nil {
			return err
		}
		if _, err := conn.Write(b); err != nil {
			return err
		}
		got, err := conn.Read(in)
		if err != nil {
			return err
		}
		if err := wire.ParseEnvelope(in[:got], &envelope); err != nil {
			return err
		}
		pdu, err := credential.Open(&envelope, &scratch)
		if err != nil {
			return err
		}
		if err := wire.ParseResponse(pdu, wire.Layout2, &view); err != nil {
			return err
		}
		if envelope.Header.UniqueID != h.UniqueID || view.Resources() != 1 || view.Resource(0).Tokens != 0 {
			return fmt.Errorf("the answer is another's, or a denial")
		}
		return nil
	}, func() { conn.Close() }, nil
}

// mostLost is the share of round trips that may have no answer in time: a shared machine may hold one up for as long.
const mostLost = 0.001

// timeTrips makes round trips for some time, one after the other.
func timeTrips(ctx context.Context, trip roundTrip, span time.Duration) (sample, error) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	var lost, all float64
	for start := time.Now(); ctx.Err() == nil && time.Since(start) < span; all++ {
		before := time.Now()
		err := trip()
		switch {
		case errors.Is(err, weir.ErrTimeout):
			if lost++; lost > 1+mostLost*all {
				return sample{}, fmt.Errorf("%.0f of %.0f round trips had no answer in time; the last: %w", lost, all+1, err)
			}
		case err != nil:
			return sample{}, err
		}
		_ = h.RecordValue(max(1, int64(time.Since(before))))
	}
	if err := context.Cause(ctx); err != nil {
		return sample{}, err
	}
	return sample{P50: micros(h.ValueAtPercentile(50))}, nil
}

// compareAcquire measures the client's round trips beside bare ones. Server and clients have processors of their own,
// as they have elsewhere: a server that answers on the client's is woken without an interrupt, in a third of the time, and
// whether it does is the system's whim.
func compareAcquire(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
	where := c.place()
	if all := processors(); len(all) > 1 {
		where.processors = all[:len(all)/2]
		if err := stayOn(all[len(all)/2:]); err != nil {
			return nil, nil, err
		}
		defer func() { _ = stayOn(all) }()
	}
	server, err := startWeirOn(ctx, where, c.binary, c.tenant)
	if err != nil {
		return nil, nil, err
	}
	defer server.end()
	acquire, closeClient, err := newAcquire(ctx, server, c.tenant.key)
	if err != nil {
		return nil, nil, err
	}
	defer closeClient()
	bare, closeBare, err := newBare(server, c.tenant.key)
	if err != nil {
		return nil, nil, err
	}
	defer closeBare()
	for _, trip := range []roundTrip{acquire, bare} { // warm
		if _, err := timeTrips(ctx, trip, c.plan.Slice/5); err != nil {
			return nil, nil, err
		}
	}
	return inTurns(c.plan.Groups, func() (sample, error) { return timeTrips(ctx, acquire, c.plan.Slice) },
		func() (sample, error) { return timeTrips(ctx, bare, c.plan.Slice) })
}

// compareCrowd measures what many goroutines get decided by way of one client, beside what the floor decides of
// lone requests in flight from many sockets.
func compareCrowd(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
	const crowd, lone = 256, 64
	acquire, closeClient, err := newAcquire(ctx, c.ours, c.tenant.key)
	if err != nil {
		return nil, nil, err
	}
	defer closeClient()
	floor, err := startFloorOn(ctx, c.place(), c.tenant, 0, 1)
	if err != nil {
		return nil, nil, err
	}
	defer floor.end()
	cfg := generator.Config{
		Keys: []apikey.Key{c.tenant.key}, Flows: lone, InFlight: lone, NoBursts: true,
		For: c.plan.Slice, WarmUp: c.plan.Slice / 5,
	}
	return inTurns(c.plan.Groups, func() (sample, error) { return countTrips(ctx, acquire, crowd, c.plan.Slice) },
		func() (sample, error) { return measure(ctx, floor, cfg) })
}

// countTrips counts the round trips that so many goroutines make in some time.
func countTrips(ctx context.Context, trip roundTrip, crowd int, span time.Duration) (sample, error) {
	var made atomic.Uint64
	ended := make(chan error)
	start := time.Now()
	for range crowd {
		go func() {
			for ctx.Err() == nil && time.Since(start) < span {
				if err := trip(); err != nil {
					ended <- err
					return
				}
				made.Add(1)
			}
			ended <- context.Cause(ctx)
		}()
	}
	var failed error
	for range crowd {
		failed = cmp.Or(failed, <-ended)
	}
	return sample{PerSecond: float64(made.Load()) / time.Since(start).Seconds()}, failed
}
