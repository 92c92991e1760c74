package core

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// Core is the state of one r-client. Make one with [New]. It is not safe for
// concurrent use: its owner serializes all calls.
type Core struct {
	cfg        Config
	timeline   *policy.Timeline
	credential *wire.Credential
	sealer     *wire.Sealer
	closed     bool

	// The time of the last call.
	started bool
	mono    time.Duration
	wall    int64 // Unix ms

	members   *snapshot
	discovery discoverer
	steering  steering
	failFast  failFast

	flights  flightPool
	table    flightTable // from Submit to the horizon
	heap     deadlineHeap
	seq      uint64 // submissions so far
	inFlight int    // undecided requests

	sends    queue[pendingSend]
	reporter reporter
	events   queue[pendingEvent]
	lent     *flight // whose results the last PollEvent gave out

	stats Stats

	// What one call works with.
	envelope wire.Envelope
	scratch  wire.Scratch
	response wire.ResponseView
	pairing  pairing
	header   wire.Header
}

// New makes a core without any server. With Config.Domain discovery is due at
// once: [Core.Deadline] says so, and the first [Core.HandleTimer] starts it.
// Without, call [Core.SetMembership].
//
// Errors are *[FieldError], *[policy.FieldError], or of the entropy source, of
// which New reads 24 bytes.
func New(cfg Config) (*Core, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	timeline, err := cfg.Policy.Compile()
	if err != nil {
		return nil, fmt.Errorf("core: Policy: %w", err)
	}
	if quota := cfg.Key.Quotas().DedupTTL; timeline.HorizonMs() > quota {
		return nil, &FieldError{"Policy", fmt.Sprintf(
			"the horizon is %d ms, but servers remember a request of this key for at most %d ms (quota dedup_ttl_ms_max); shorten the policy or use another key",
			timeline.HorizonMs(), quota)}
	}
	if err := cfg.FailFast.fill(timeline.Horizon()); err != nil {
		return nil, err
	}
	credential, err := wire.NewCredential(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("core: Key: %w", err)
	}
	sealer, err := wire.NewSealer(cfg.Entropy)
	if err != nil {
		return nil, fmt.Errorf("core: Entropy: %w", err)
	}
	random, err := newJitter(cfg.Entropy)
	if err != nil {
		return nil, err
	}
	return &Core{
		cfg:        cfg,
		timeline:   timeline,
		credential: credential,
		sealer:     sealer,
		members:    &snapshot{},
		discovery:  newDiscoverer(&cfg, random),
		failFast:   failFast{calm: -maxMono},
	}, nil
}

// Timeline returns the compiled request policy.
func (c *Core) Timeline() *policy.Timeline { return c.timeline }

// Deadline returns the exact monotonic instant at which [Core.HandleTimer] has
// something to do, and false while there is none. It may have passed. Ask again
// after every call.
func (c *Core) Deadline() (time.Duration, bool) {
	at, ok := c.discovery.deadline(c.mono)
	if next, failing := c.failFast.deadline(); failing && (!ok || next < at) {
		at, ok = next, true
	}
	if f := c.heap.min(); f != nil && (!ok || f.deadline < at) {
		return f.deadline, true
	}
	return at, ok
}

// HandleTimer runs every deadline at or before now. A call before
// [Core.Deadline] does nothing; a late one sends, for each request, at most the
// replay of the round that now lies in.
func (c *Core) HandleTimer(now Time) {
	t := c.advance(now)
	if c.closed {
		return
	}
	for f := c.heap.min(); f != nil && f.deadline <= t; f = c.heap.min() {
		c.fire(t, f)
	}
	c.tickDiscovery(t)
	c.tickFailFast(t)
}

// Close ends everything: requests in flight end without a completion, datagrams
// that were not polled and completion deliveries that are delayed are not sent, and
// lookups are canceled (drain
// [Core.PollEvent]; completions of requests that were decided before are there
// too). Later calls do nothing or fail with [ErrClosed]. It is idempotent.
func (c *Core) Close(now Time) {
	c.advance(now)
	if c.closed {
		return
	}
	c.closed = true
	for f := c.heap.min(); f != nil; f = c.heap.min() {
		c.forget(f)
	}
	c.inFlight = 0
	c.stopFailFast()
	c.sends.clear()
	c.stopDiscovery()
}

// newJitter seeds a generator for the jitter of discovery, which needs to be
// unpredictable to nobody.
func newJitter(entropy io.Reader) (*rand.Rand, error) {
	var seed [16]byte
	if _, err := io.ReadFull(entropy, seed[:]); err != nil {
		return nil, fmt.Errorf("core: Entropy: reading %d bytes: %w", len(seed), err)
	}
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:]))), nil
}
