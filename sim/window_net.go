package sim

import (
	"cmp"
	"slices"
	"time"
)

// netWindow is a tumbling window of a bucket that still gets requests' decisions.
type netWindow struct {
	number int64 // it begins at number windows since 0
	tokens int64 // granted to clients less granted by the oracle
}

// net adds tokens to the tumbling window in which a request was submitted, and closes those of the
// bucket to which nothing is added any more: all that ended at or before final.
func (b *buckets) net(bucket int, submit, final time.Duration, tokens int64, out *NetTokens) {
	u := &b.all[bucket]
	if u.window == 0 {
		return // it grants nothing to anybody
	}
	u.open = slices.DeleteFunc(u.open, func(w netWindow) bool {
		over := time.Duration(w.number+1)*u.window <= final
		if over {
			out.close(w.tokens, uint32(u.limit))
		}
		return over
	})
	number := int64(submit / u.window)
	for i := range u.open {
		if u.open[i].number == number {
			u.open[i].tokens += tokens
			return
		}
	}
	u.open = append(u.open, netWindow{number, tokens})
}

// finish closes all windows.
func (b *buckets) finish(out *NetTokens) {
	for i := range b.all {
		u := &b.all[i]
		for _, w := range u.open {
			out.close(w.tokens, uint32(u.limit))
		}
		u.open = nil
	}
}

func (n *NetTokens) close(tokens int64, limit uint32) {
	i, found := slices.BinarySearchFunc(n.Limits, limit, func(r NetRate, limit uint32) int { return cmp.Compare(r.Limit, limit) })
	if !found {
		n.Limits = slices.Insert(n.Limits, i, NetRate{Limit: limit})
	}
	r := &n.Limits[i]
	absolute := uint64(max(tokens, -tokens))
	n.Windows++
	n.Absolute += absolute
	n.Signed += tokens
	n.Max = max(n.Max, absolute)
	r.Windows++
	r.Absolute += absolute
	r.Max = max(r.Max, absolute)
}
