package limiter

import (
	"github.com/weirhq/weir/wire"
)

// Engine decides the requests of one tenant. It is not safe for concurrent use. Make one with [New].
type Engine struct {
	config   Config
	now      int64  // ns: the latest monotonic time
	wall     uint64 // ms: the wall clock of this call
	buckets  buckets
	trackers trackers
	dedup    dedup
	answers  answers
	print    hasher // of PDUs
	demands  []demand
	blocks   []int    // which demand each resource block of the request adds to
	paced    []uint32 // pacers of the request's guards
	refused  uint64
	dropped  uint64
	shadowed uint64
}

// New returns an engine without state. The error names the field of a configuration that cannot be.
func New(c Config) (*Engine, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	seed := newHasher(c.Seed)
	e := &Engine{print: seed.derive(4)}
	e.buckets.hash = seed.derive(1)
	e.trackers.hash = seed.derive(2)
	e.trackers.ranks = seed.sum3(5, 0, 0)
	e.dedup.hash = seed.derive(3)
	e.dedup.floor, e.dedup.latest = c.Start, c.Start
	e.set(c)
	return e, nil
}

// Reconfigure changes quotas, room and estimator of an engine at work. Seed and Start are ignored.
// State above a lowered quota stays until it expires, and new is refused; identities and answers
// above their lowered bounds go, the oldest first. On an error nothing is changed.
func (e *Engine) Reconfigure(c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	c.Seed, c.Start = e.config.Seed, e.config.Start
	e.set(c)
	return nil
}

func (e *Engine) set(c Config) {
	e.config = c
	e.buckets.limit = int(c.RateBuckets)
	e.buckets.mem.limit = c.groupLimit()
	e.trackers.limit = int(c.LatencyServices)
	e.trackers.samples = c.LatencyBufferSize
	e.trackers.mem.limit = c.sampleLimit()
	e.trackers.estimator = c.Estimator
	e.trackers.paced, e.trackers.probe = c.Pacing, c.Probe
	e.dedup.limit = c.Identities
	e.dedup.calendar.fit(2*uint64(c.Skew) + uint64(c.DedupTTLMax))
	e.answers.resize(c.AnswerBytes, e.now)
}

// Decide decides a request, or answers a repeat of one as the first was answered, also if Config.Shadow
// has changed since. The header and
// the request are authentic and stay unchanged during the call. The answer is put into ans, whose
// slices are reused; on a drop it is empty. A decision about known state does not allocate, given
// room in ans.
func (e *Engine) Decide(now Time, h *wire.Header, v *wire.RequestView, ans *wire.Answer) Verdict {
	ans.Latencies, ans.Rates, ans.Deficits = ans.Latencies[:0], ans.Rates[:0], ans.Deficits[:0]
	e.advance(now)
	blocks := v.Resources()
	e.reclaim(stepsPerCall+stepsPerBlock*blocks, stepsPerCall, stepsPerCall)

	switch {
	case v.DedupTTL == 0 || v.DedupTTL > e.config.DedupTTLMax:
		return DropTTL
	case e.stale(h.Timestamp):
		return DropStale
	}
	for i := range blocks {
		if v.Resource(i).Window > e.config.WindowMax {
			return DropWindow
		}
	}
	id := identity{
		key:   identityKey{h.UniqueID, wire.KindRequest},
		spent: h.Timestamp + uint64(v.DedupTTL),
		until: e.now + int64(v.DedupTTL)*nsPerMs,
		print: e.fingerprint(v.PDU()),
	}
	hash := id.key.hash(e.dedup.hash)
	if i := e.dedup.find(&id.key, hash); i != 0 {
		return e.repeat(i, &id, ans)
	}
	if h.Timestamp <= e.dedup.floor {
		return DropFloor
	}
	granted := e.decide(v, ans)
	if !granted && e.config.Shadow && pass(v, ans) {
		e.shadowed++
	}
	id.reply = e.answers.put(e.now, id.until, granted, ans)
	e.dedup.remember(&id, hash, e.fresh())
	if granted {
		return Granted
	}
	return Rejected
}

// Observe takes in a latency report. The header and the report are authentic and stay unchanged
// during the call.
func (e *Engine) Observe(now Time, h *wire.Header, v *wire.ReportView) Verdict {
	e.advance(now)
	blocks := v.Len()
	e.reclaim(stepsPerCall, stepsPerCall+stepsPerBlock*blocks, stepsPerCall)
	if e.stale(h.Timestamp) {
		return DropStale
	}
	id := identity{
		key:   identityKey{h.UniqueID, wire.KindReport},
		spent: h.Timestamp + uint64(e.config.DedupTTLMax),
	}
	hash := id.key.hash(e.dedup.hash)
	if i := e.dedup.find(&id.key, hash); i != 0 {
		e.dedup.prolong(i, id.spent)
		return DropReplayed
	}
	if h.Timestamp <= e.dedup.floor {
		return DropFloor
	}
	for i := range blocks {
		o := v.At(i)
		key := observationKey(&o, v.Layout)
		if !e.trackers.observe(&key, e.now, o.Latency) {
			e.dropped++
		}
	}
	e.dedup.remember(&id, hash, e.fresh())
	return Observed
}

// repeat answers a repeat of identity i, or says why not.
func (e *Engine) repeat(i uint32, again *identity, ans *wire.Answer) Verdict {
	first := e.dedup.pool.at(i)
	e.dedup.prolong(i, again.spent)
	if e.now >= first.until {
		return DropReplayed
	}
	if first.print != again.print {
		return DropMismatch
	}
	granted, ok := e.answers.get(first.reply, ans)
	switch {
	case !ok:
		return DropNoAnswer
	case granted:
		return RepeatGranted
	}
	return RepeatRejected
}

// advance sets the time of a call.
func (e *Engine) advance(now Time) {
	e.now = max(e.now, now.Mono)
	e.wall = now.Wall
}

// fresh returns the oldest timestamp that is not stale.
func (e *Engine) fresh() uint64 { return e.wall - min(e.wall, uint64(e.config.Skew)) }

func (e *Engine) stale(timestamp uint64) bool {
	return timestamp < e.fresh() || timestamp > e.wall && timestamp-e.wall > uint64(e.config.Skew)
}

// fingerprint returns a hash of a PDU that nobody can make another PDU for.
func (e *Engine) fingerprint(pdu []byte) uint64 { return e.print.sum(pdu) }
