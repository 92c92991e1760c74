package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/limiter"
)

// maxLabel is the longest metrics label that is kept, in bytes, escapes included.
const maxLabel = 64

// overflowLabel is what requests count under once a tenant has used up its quota of
// labels.
const overflowLabel = "overflow"

// appendSafeLabel appends what of a label is fit to be shown, at most maxLabel bytes:
// every byte of invalid UTF-8 and of what does not print (controls, but also the
// characters that turn or hide text) becomes \xNN, and no character or escape is cut
// in half. It is called once, where a label enters the server; raw bytes go no further.
func appendSafeLabel(dst, raw []byte) []byte {
	const hexDigits = "0123456789abcdef"
	start := len(dst)
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			if len(dst)-start+n > maxLabel {
				break
			}
			dst = append(dst, raw[:n]...)
		} else {
			if len(dst)-start+4*n > maxLabel {
				break
			}
			for _, b := range raw[:n] {
				dst = append(dst, '\\', 'x', hexDigits[b>>4], hexDigits[b&15])
			}
		}
		raw = raw[n:]
	}
	return dst
}

// labelTable counts one tenant's decisions by label. It holds at most its quota of
// labels; those that come after count under overflowLabel.
type labelTable struct {
	mu       sync.RWMutex
	quota    int
	counts   map[string]*decisionCounts
	rows     []labelCount // the same; only ever longer
	overflow decisionCounts
}

// decisionCounts counts decisions by verdict. Verdicts that are none do not occur.
type decisionCounts [limiter.RepeatRejected + 1]atomic.Uint64

// count adds one decision under a label that appendSafeLabel made. It allocates only
// for a label that it sees for the first time, which the quota bounds.
func (t *labelTable) count(label []byte, verdict limiter.Verdict) {
	if len(label) == 0 {
		return
	}
	t.mu.RLock()
	c := t.counts[string(label)]
	full := len(t.counts) >= t.quota
	t.mu.RUnlock()
	if c == nil {
		c = &t.overflow
		if !full && string(label) != overflowLabel {
			c = t.add(string(label))
		}
	}
	c[verdict].Add(1)
}

func (t *labelTable) add(label string) *decisionCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.counts[label]; c != nil {
		return c
	}
	if len(t.counts) >= t.quota {
		return &t.overflow
	}
	if t.counts == nil {
		t.counts = make(map[string]*decisionCounts)
	}
	c := new(decisionCounts)
	t.counts[label] = c
	t.rows = append(t.rows, labelCount{label, c})
	return c
}

// setQuota changes how many labels there may be. Labels above a lowered quota stay.
func (t *labelTable) setQuota(quota int) {
	t.mu.Lock()
	t.quota = quota
	t.mu.Unlock()
}

// labelCount is one row of a snapshot.
type labelCount struct {
	label  string
	counts *decisionCounts
}

// snapshot returns the labels with their live counters, the oldest first, and the overflow
// last. It holds the lock, which a new label waits for, only to look how many there are.
func (t *labelTable) snapshot() []labelCount {
	t.mu.RLock()
	rows := t.rows
	t.mu.RUnlock()
	return append(slices.Clone(rows), labelCount{overflowLabel, &t.overflow})
}
