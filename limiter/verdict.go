package limiter

import "strconv"

// Verdict is what became of a datagram. The zero value is no verdict.
type Verdict uint8

// The verdicts. Those from DropTTL on are drops: they are counted and never answered
// (docs/server.md, "Dropped datagrams").
const (
	Granted        Verdict = 1 + iota // every guard passed, every token is consumed
	Rejected                          // a guard or a bucket refused; nothing is consumed
	RepeatGranted                     // a repeat of a request that was granted; the same answer
	RepeatRejected                    // a repeat of a request that was rejected; the same answer
	Observed                          // a report was taken in; reports have no answer

	DropTTL      // the dedup TTL is 0 or above the tenant's maximum
	DropStale    // the timestamp is further from the wall clock than the skew allows
	DropWindow   // a bucket's window is above the tenant's maximum
	DropMismatch // a repeat whose PDU differs from the first
	DropNoAnswer // a repeat in time, whose answer was forgotten early for want of memory
	DropReplayed // a repeat after its TTL, or of a report
	DropFloor    // unknown, and as old as identities that are already forgotten

	verdicts
)

var verdictNames = [verdicts]string{
	Granted:        "granted",
	Rejected:       "rejected",
	RepeatGranted:  "repeat_granted",
	RepeatRejected: "repeat_rejected",
	Observed:       "observed",
	DropTTL:        "ttl",
	DropStale:      "stale",
	DropWindow:     "window",
	DropMismatch:   "mismatch",
	DropNoAnswer:   "no_answer",
	DropReplayed:   "replayed",
	DropFloor:      "floor",
}

// Dropped reports whether the datagram is to be dropped in silence.
func (v Verdict) Dropped() bool { return v >= DropTTL }

// String returns the name that metrics show: an outcome such as "granted", or a reason for a drop
// such as "stale".
func (v Verdict) String() string {
	if v > 0 && v < verdicts {
		return verdictNames[v]
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}
