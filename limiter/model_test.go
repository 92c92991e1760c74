package limiter

import (
	"bytes"
	"slices"

	"github.com/weirhq/weir/wire"
)

// model is the engine's rules written down once more, without any economy: maps, exact logs, and
// searches through everything. It has no wheel, no table, no ring.
type model struct {
	c        Config
	now      Time
	floor    uint64
	degraded uint64
	buckets  map[bucketKey]*exactLog
	trackers map[trackerKey]*plainTracker
	known    map[identityKey]*memory
	// told is what the engine's guards show. The model does not pace, and takes their word for it once
	// they have paced: a trip forgets samples.
	told  []uint32
	paced bool
}

// memory is what a model remembers of an identity.
type memory struct {
	spent   uint64
	until   int64
	pdu     []byte
	granted bool
	ans     wire.Answer
}

func newModel(c Config) *model {
	c, err := c.complete()
	if err != nil {
		panic(err)
	}
	return &model{
		c: c, paced: c.Pacing, floor: c.Start, buckets: map[bucketKey]*exactLog{},
		trackers: map[trackerKey]*plainTracker{}, known: map[identityKey]*memory{},
	}
}

// reload changes the configuration: what is there stays, and drains.
func (m *model) reload(c Config) {
	c, err := c.complete()
	if err != nil {
		panic(err)
	}
	m.c = c
	m.paced = m.paced || c.Pacing
}

func (m *model) advance(now Time) {
	m.now = Time{Mono: max(m.now.Mono, now.Mono), Wall: now.Wall}
	for key, l := range m.buckets {
		if l.expire(m.now.Mono); l.live == 0 {
			delete(m.buckets, key)
		}
	}
	for key, p := range m.trackers {
		if p.expire(m.now.Mono); len(p.times) == 0 {
			delete(m.trackers, key)
		}
	}
	for key, id := range m.known {
		if id.spent < m.now.Wall-uint64(m.c.Skew) {
			m.floor = max(m.floor, id.spent)
			delete(m.known, key)
		}
	}
}

func (m *model) stale(h *wire.Header) bool {
	return max(h.Timestamp, m.now.Wall)-min(h.Timestamp, m.now.Wall) > uint64(m.c.Skew)
}

func (m *model) remember(key identityKey, id *memory) {
	m.known[key] = id
	for drop := 2; drop > 0 && len(m.known) > m.c.Identities; drop-- {
		first := key
		for k, other := range m.known {
			if m.known[first] == nil || other.spent < m.known[first].spent {
				first = k
			}
		}
		m.floor = max(m.floor, m.known[first].spent)
		m.degraded++
		delete(m.known, first)
	}
}

func (m *model) decide(now Time, h *wire.Header, v *wire.RequestView) (Verdict, wire.Answer) {
	m.advance(now)
	if v.DedupTTL == 0 || v.DedupTTL > m.c.DedupTTLMax {
		return DropTTL, wire.Answer{}
	}
	if m.stale(h) {
		return DropStale, wire.Answer{}
	}
	for i := range v.Resources() {
		if v.Resource(i).Window > m.c.WindowMax {
			return DropWindow, wire.Answer{}
		}
	}
	key := identityKey{h.UniqueID, wire.KindRequest}
	spent := h.Timestamp + uint64(v.DedupTTL)
	if id := m.known[key]; id != nil {
		id.spent = max(id.spent, spent)
		switch {
		case m.now.Mono >= id.until:
			return DropReplayed, wire.Answer{}
		case !bytes.Equal(id.pdu, v.PDU()):
			return DropMismatch, wire.Answer{}
		case id.granted:
			return RepeatGranted, id.ans
		}
		return RepeatRejected, id.ans
	}
	if h.Timestamp <= m.floor {
		return DropFloor, wire.Answer{}
	}
	granted, ans := m.evaluate(v)
	if m.c.Shadow && !granted {
		for i, latency := range ans.Latencies {
			if t := v.Guard(i).Threshold; t > 0 && latency >= t {
				ans.Latencies[i] = t - 1
			}
		}
		ans.Deficits = make([]uint16, len(ans.Deficits))
	}
	m.remember(key, &memory{spent, m.now.Mono + int64(v.DedupTTL)*nsPerMs, slices.Clone(v.PDU()), granted, ans})
	if granted {
		return Granted, ans
	}
	return Rejected, ans
}

func (m *model) evaluate(v *wire.RequestView) (granted bool, ans wire.Answer) {
	granted = true
	for i := range v.Guards() {
		g := v.Guard(i)
		latency := uint32(0)
		if p := m.trackers[guardKey(&g, v.Layout)]; p != nil && len(p.latencies) >= int(g.MinSamples) {
			latency = statisticOf(m.c.Estimator, p.latencies)
		}
		if m.paced && i < len(m.told) {
			latency = m.told[i]
		}
		ans.Latencies = append(ans.Latencies, latency)
		granted = granted && latency < g.Threshold
	}
	// earlier holds what the blocks before ask of each bucket.
	earlier := map[bucketKey]uint64{}
	made, noRoom := map[bucketKey]bool{}, map[bucketKey]bool{}
	for i := range v.Resources() {
		r := v.Resource(i)
		key := bucketKey{r.Bucket, r.Window, r.Rate}
		live := uint64(0)
		if l := m.buckets[key]; l != nil {
			live = uint64(l.live)
		}
		need := live + earlier[key] + uint64(r.Tokens)
		rate := uint64(r.Rate)
		if r.Window == 0 {
			rate = 0
		}
		deficit := uint64(0)
		if need > rate {
			deficit = min(uint64(r.Tokens), need-rate)
		}
		if r.Tokens > 0 && deficit == 0 && m.buckets[key] == nil && !made[key] {
			if len(m.buckets)+len(made) < int(m.c.RateBuckets) {
				made[key] = true
			} else {
				noRoom[key] = true
			}
		}
		if noRoom[key] {
			deficit = uint64(r.Tokens)
		}
		earlier[key] += uint64(r.Tokens)
		ans.Deficits = append(ans.Deficits, uint16(deficit))
		granted = granted && deficit == 0
	}
	for key, tokens := range earlier {
		if !granted || tokens == 0 {
			continue
		}
		if m.buckets[key] == nil {
			m.buckets[key] = &exactLog{window: key.windowNs(), rate: key.rate}
		}
		m.buckets[key].add(m.now.Mono, uint32(tokens))
	}
	for i := range v.Resources() {
		r := v.Resource(i)
		rate := uint32(0)
		if l := m.buckets[bucketKey{r.Bucket, r.Window, r.Rate}]; l != nil {
			rate = l.live
		}
		ans.Rates = append(ans.Rates, rate)
	}
	return granted, ans
}

func (m *model) observe(now Time, h *wire.Header, v *wire.ReportView) Verdict {
	m.advance(now)
	if m.stale(h) {
		return DropStale
	}
	key := identityKey{h.UniqueID, wire.KindReport}
	spent := h.Timestamp + uint64(m.c.DedupTTLMax)
	if id := m.known[key]; id != nil {
		id.spent = max(id.spent, spent)
		return DropReplayed
	}
	if h.Timestamp <= m.floor {
		return DropFloor
	}
	for i := range v.Len() {
		o := v.At(i)
		k := observationKey(&o, v.Layout)
		capacity := min(m.c.LatencyBufferSize, o.MaxSamples)
		if v.Layout == wire.Layout1 {
			capacity = min(capacity, o.BufferSize)
		}
		if capacity == 0 || o.TTL == 0 {
			continue
		}
		if m.trackers[k] == nil {
			if len(m.trackers) >= int(m.c.LatencyServices) {
				continue
			}
			m.trackers[k] = &plainTracker{ttl: k.ttlNs()}
		}
		m.trackers[k].observe(m.now.Mono, o.Latency, int(capacity))
	}
	m.remember(key, &memory{spent: spent})
	return Observed
}
