package sim

import (
	"cmp"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// buckets holds what the measures know of each bucket that a request named.
type buckets struct {
	byKey map[bucketName]int
	all   []bucketUse
}

type bucketName struct {
	id     ident.ID
	window uint32 // ms
	limit  uint32
}

// bucketUse is the exact log of one bucket: the grants of the last window in order.
type bucketUse struct {
	window time.Duration
	limit  uint64
	log    []logged
	head   int    // of log; what is before has left the window
	live   uint64 // tokens in the log
	held   uint64 // of them those that are not excess
	open   []netWindow
}

// logged is what was granted at one instant.
type logged struct {
	at           time.Duration
	tokens, held uint64
}

// index returns the number of a bucket.
func (b *buckets) index(r *wire.Resource) int {
	name := bucketName{r.Bucket, r.Window, r.Rate}
	if i, ok := b.byKey[name]; ok {
		return i
	}
	if b.byKey == nil {
		b.byKey = map[bucketName]int{}
	}
	i := len(b.all)
	b.byKey[name] = i
	b.all = append(b.all, bucketUse{window: time.Duration(r.Window) * time.Millisecond, limit: uint64(r.Rate)})
	return i
}

// grant enters a grant, none of which is earlier than the last. What of it does not fit into the
// window that ends with it, beside what fitted of earlier ones, is excess: no choice of tokens to
// leave out is smaller.
func (b *buckets) grant(g *grant, out *OverLimit) {
	u := &b.all[g.bucket]
	u.expire(g.place)
	tokens := uint64(g.tokens)
	held := min(tokens, u.limit-min(u.limit, u.held))
	u.live += tokens
	u.held += held
	if n := len(u.log); n > u.head && u.log[n-1].at == g.place {
		u.log[n-1].tokens += tokens
		u.log[n-1].held += held
	} else {
		u.log = append(u.log, logged{g.place, tokens, held})
	}
	if !g.measured {
		return
	}
	out.Granted += tokens
	out.Excess += tokens - held
	if held < tokens {
		out.Grants++
	}
	if u.live > u.limit && u.limit > 0 {
		out.WorstPPM = max(out.WorstPPM, (u.live-u.limit)*1_000_000/u.limit)
	}
}

// expire takes out what is a whole window old: windows are half-open.
func (u *bucketUse) expire(now time.Duration) {
	for u.head < len(u.log) && u.log[u.head].at <= now-u.window {
		u.live -= u.log[u.head].tokens
		u.held -= u.log[u.head].held
		u.head++
	}
	if 2*u.head >= len(u.log) {
		u.log = u.log[:copy(u.log, u.log[u.head:])]
		u.head = 0
	}
}

// grant is what a client was granted of one bucket.
type grant struct {
	place    time.Duration // when the deciding server executed it
	request  uint64
	bucket   int
	tokens   uint32
	measured bool
}

func (g *grant) compare(o *grant) int {
	return cmp.Or(cmp.Compare(g.place, o.place), cmp.Compare(g.request, o.request), cmp.Compare(g.bucket, o.bucket))
}

// grantQueue puts grants in the order of their places: a heap, since clients learn of them in
// another. A grant is at most a horizon old when its client decides.
type grantQueue []grant

func (q *grantQueue) push(g grant) {
	h := append(*q, g)
	i := len(h) - 1
	for i > 0 && h[i].compare(&h[(i-1)/2]) < 0 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	*q = h
}

// pop takes out the first grant if its place is at or before a time.
func (q *grantQueue) pop(place time.Duration) (grant, bool) {
	h := *q
	if len(h) == 0 || h[0].place > place {
		return grant{}, false
	}
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && h[child].compare(&h[least]) < 0 {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return first, true
}
