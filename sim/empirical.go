package sim

import (
	"slices"
	"sort"
	"time"
)

// empirical is a distribution of values that were seen.
type empirical struct {
	values []time.Duration // ascending
	until  []uint64        // how often one of the values up to each was seen
}

// Empirical returns the distribution of values that were seen counts[i] times each, or once each
// if counts is nil. It keeps neither slice. Values without a count are left out.
func Empirical(values []time.Duration, counts []uint64) Dist {
	d := Dist{kind: distEmpirical, data: &empirical{}}
	if counts != nil && len(counts) != len(values) {
		return d // which Validate refuses
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(min(1, max(-1, values[i]-values[j]))) })
	sum := uint64(0)
	for _, i := range order {
		count := uint64(1)
		if counts != nil {
			count = counts[i]
		}
		if count == 0 {
			continue
		}
		sum += count
		d.data.values = append(d.data.values, values[i])
		d.data.until = append(d.data.until, sum)
	}
	return d
}

func (e *empirical) at(word uint64) time.Duration {
	if len(e.values) == 0 {
		return 0
	}
	x := share(word, e.until[len(e.until)-1])
	return e.values[sort.Search(len(e.until), func(i int) bool { return x < e.until[i] })]
}
