package limiter

import "fmt"

// The defaults of [Config] and its bounds.
const (
	DefaultSkew        = 5000     // ms
	DefaultIdentities  = 1 << 20  // about 90 bytes each, as they come
	DefaultAnswerBytes = 16 << 20 // bytes, as they are needed

	// MaxRecords is the most buckets, trackers or identities that an engine holds, whatever its
	// quotas say.
	MaxRecords = 1 << 27
	// MaxSamples is the most samples that a tracker keeps, whatever its quota: what a key of format 1
	// can name.
	MaxSamples = maxSamples
)

// Time is the time of a call: one reading of two clocks.
type Time struct {
	Mono int64  // ns since any fixed origin, not negative; one that goes back counts as the last one
	Wall uint64 // Unix ms
}

// Config is what an engine is made with: a tenant's quotas, which an [Engine] enforces
// (docs/protocol.md, "API keys"), and its room to remember.
type Config struct {
	RateBuckets       uint32 // live buckets; a request for one more is an ordinary rejection
	LatencyServices   uint32 // live trackers; a guard on one more passes, a report for one is dropped
	LatencyBufferSize uint32 // samples a tracker; over 32768 counts as 32768
	DedupTTLMax       uint32 // ms; a request with a longer dedup TTL, or with none, is dropped
	WindowMax         uint32 // ms; a request with a longer window is dropped
	Skew              uint32 // ms that a timestamp may differ from the wall clock; 0 = DefaultSkew

	Identities  int // executed datagrams that are remembered; 0 = DefaultIdentities
	AnswerBytes int // bytes of answers kept for repeats, at least 1024; 0 = DefaultAnswerBytes

	Estimator Estimator

	// Pacing makes a guard that trips pace the requests that carry it (docs/pacing.md). Without
	// it a guard sheds plainly: it passes while the estimate is below its threshold.
	Pacing bool
	// Probe is the longest time in ms between two requests that a pacing guard lets pass, half of the
	// tracker's TTL if that is less; 0 = 900.
	Probe uint32

	// Shadow answers rejected requests with numbers that pass, as far as a threshold of 0 lets them.
	// Everything else, verdicts too, is as without it: a rejection consumes nothing.
	Shadow bool

	// Seed keys the hashes of all tables. Draw it anew for every engine from a cryptographic source
	// and keep it secret: who knows it can make tables slow.
	Seed [16]byte
	// Start is the first floor in Unix ms: requests with a timestamp up to it are dropped. It is the
	// start of the process, or [Stats.Latest] of an earlier engine of the tenant if that is later.
	Start uint64
}

// complete checks c, fills in defaults and bounds what is unbounded.
func (c Config) complete() (Config, error) {
	switch {
	case c.Identities < 0:
		return c, fmt.Errorf("limiter: Config.Identities is %d; use a positive number, or 0 for %d", c.Identities, DefaultIdentities)
	case c.AnswerBytes < 0:
		return c, fmt.Errorf("limiter: Config.AnswerBytes is %d; use a positive number, or 0 for %d", c.AnswerBytes, DefaultAnswerBytes)
	case c.Estimator >= estimators:
		return c, fmt.Errorf("limiter: Config.Estimator is %d; use P50, Min, P90, P99 or Mean", c.Estimator)
	}
	if c.Skew == 0 {
		c.Skew = DefaultSkew
	}
	if c.Identities == 0 {
		c.Identities = DefaultIdentities
	}
	if c.Probe == 0 {
		c.Probe = defaultProbe
	}
	if c.AnswerBytes == 0 {
		c.AnswerBytes = DefaultAnswerBytes
	}
	c.RateBuckets = min(c.RateBuckets, MaxRecords)
	c.LatencyServices = min(c.LatencyServices, MaxRecords)
	c.Identities = min(c.Identities, MaxRecords)
	c.LatencyBufferSize = min(c.LatencyBufferSize, maxSamples)
	return c, nil
}

// groupLimit is how many items the buckets' slabs may have: every bucket at its largest, and a chunk
// of each size under way.
func (c *Config) groupLimit() int {
	return int(c.RateBuckets)*maxGroups + (int(slabClass(maxGroups))+1)*slabChunk
}

// sampleLimit is the same for the trackers' slabs.
func (c *Config) sampleLimit() int {
	class := slabClass(int(c.LatencyBufferSize))
	return int(c.LatencyServices)*slabItems(class) + (int(class)+1)*max(slabChunk, slabItems(class))
}
