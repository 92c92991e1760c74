package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"unsafe"

	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// room is what bounds a tenant's memory: the quotas of its newest key and the server's own
// bounds, or less where a memory limit clamps them.
type room struct {
	engine limiter.Config
	labels int
	keys   int
}

// The least that a memory limit clamps to. With less a tenant would hardly be served.
const (
	leastBuckets    = 16
	leastTrackers   = 1
	leastSamples    = 16
	leastIdentities = 1024
	leastAnswers    = 16 << 10
	leastLabels     = 1
)

// What a label and a key of a tenant take, with what maps and allocations round up to.
const (
	labelBytes = maxLabel + int(unsafe.Sizeof(decisionCounts{})) + 2*int(unsafe.Sizeof(labelCount{})) + 88
	keyBytes   = 1 << 10
)

// worst returns how many bytes a tenant's state can come to.
func (r *room) worst() int64 {
	fixed := int(unsafe.Sizeof(tenant{})+unsafe.Sizeof(tenantState{})) + r.keys*(keyBytes+int(unsafe.Sizeof(wire.Credential{})))
	return int64(r.engine.WorstCase()) + int64(r.labels)*int64(labelBytes) + int64(fixed)
}

// roomPart is one number of a room, as metrics and logs name it, and the least of it that a
// memory limit leaves.
type roomPart struct {
	name         string
	value, least int
}

// The numbers of a room, by their place in parts.
const (
	partBuckets = iota
	partTrackers
	partSamples
	partIdentities
	partAnswers
	partLabels
	partCount
)

func (r *room) parts() [partCount]roomPart {
	return [partCount]roomPart{
		partBuckets:    {"rate_buckets", int(r.engine.RateBuckets), leastBuckets},
		partTrackers:   {"latency_services", int(r.engine.LatencyServices), leastTrackers},
		partSamples:    {"latency_buffer_size", int(r.engine.LatencyBufferSize), leastSamples},
		partIdentities: {"identities", r.engine.Identities, leastIdentities},
		partAnswers:    {"answer_bytes", r.engine.AnswerBytes, leastAnswers},
		partLabels:     {"labels", r.labels, leastLabels},
	}
}

// with returns the room with another number.
func (r room) with(part, value int) room {
	switch part {
	case partBuckets:
		r.engine.RateBuckets = uint32(value)
	case partTrackers:
		r.engine.LatencyServices = uint32(value)
	case partSamples:
		r.engine.LatencyBufferSize = uint32(value)
	case partIdentities:
		r.engine.Identities = value
	case partAnswers:
		r.engine.AnswerBytes = value
	case partLabels:
		r.labels = value
	}
	return r
}

// least returns the room with the least of everything but the samples.
func (r room) least() room {
	for i, p := range r.parts() {
		if i != partSamples {
			r = r.with(i, min(p.value, p.least))
		}
	}
	return r
}

// clamp returns the largest room that takes at most so many bytes, where no table takes
// more than another that is cut. Samples a tracker are cut only where even the least of
// everything else is too much, as a shorter buffer changes what guards see. ok is false if
// that does not help.
func (r room) clamp(most int64) (clamped room, ok bool) {
	if r.worst() <= most {
		return r, true
	}
	least := r.least()
	for ; least.worst() > most; least = r.least() {
		half := r.engine.LatencyBufferSize / 2
		if half < leastSamples {
			return least, false
		}
		r.engine.LatencyBufferSize = half
	}
	level := most64(0, most, func(level int64) bool {
		cut := r.cut(level)
		return cut.worst() <= most
	})
	return r.cut(level), true
}

// cut returns the room in which no table takes more than so many bytes beyond its least.
func (r room) cut(level int64) room {
	least := r.least()
	base := least.worst()
	cut := least
	for i, p := range r.parts() {
		if i == partSamples {
			continue
		}
		value := most64(int64(min(p.value, p.least)), int64(p.value), func(n int64) bool {
			only := least.with(i, int(n))
			return only.worst()-base <= level
		})
		cut = cut.with(i, int(value))
	}
	return cut
}

// most64 returns the greatest number from low to high that fits; low does.
func most64(low, high int64, fits func(int64) bool) int64 {
	for low < high {
		middle := low + (high-low+1)/2
		if fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// changes describes what of a wanted room was clamped to what, for a log line.
func (r *room) changes(wanted *room) []any {
	var attrs []any
	before := wanted.parts()
	for i, p := range r.parts() {
		if p.value != before[i].value {
			attrs = append(attrs, slog.String(p.name, fmt.Sprintf("%d of %d", p.value, before[i].value)))
		}
	}
	return attrs
}

// memoryPlan is the room of every tenant of a list, by its place in the list.
type memoryPlan struct {
	wanted, given []room
}

// planMemory gives every tenant the room that it wants, or, where all of them could
// together take more than the limit (0: none), the same share of it to each that wants
// more than that. strict makes it an error instead.
func planMemory(wanted []room, limit int64, strict bool) (memoryPlan, error) {
	p := memoryPlan{wanted: wanted, given: slices.Clone(wanted)}
	if limit == 0 {
		return p, nil
	}
	worsts := make([]int64, len(wanted))
	total := int64(0)
	for i := range wanted {
		worsts[i] = wanted[i].worst()
		total += min(worsts[i], math.MaxInt64-total)
	}
	if total <= limit {
		return p, nil
	}
	if strict {
		return p, fmt.Errorf("server: memory limit: the tenants can come to hold %d bytes, and the limit is %d; raise it, issue keys with lower quotas, lower the bounds of identities and answers, or let the limit clamp them", total, limit)
	}
	share := fairShare(worsts, limit)
	for i := range wanted {
		room, ok := wanted[i].clamp(share)
		if !ok {
			return p, fmt.Errorf("server: memory limit: %d bytes for %d tenants leave %d for one of them, and the least is %d; raise the limit", limit, len(wanted), share, room.worst())
		}
		p.given[i] = room
	}
	return p, nil
}

// fairShare returns the largest share with which everybody who wants at most it gets what
// they want, everybody else gets it, and all that is together at most the limit.
func fairShare(wants []int64, limit int64) int64 {
	ascending := slices.Clone(wants)
	slices.SortFunc(ascending, cmp.Compare[int64])
	left := limit
	for i, want := range ascending {
		share := left / int64(len(ascending)-i)
		if want > share {
			return share
		}
		left -= want
	}
	return limit
}
