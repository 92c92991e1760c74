package demo

import (
	"slices"
	"time"
)

// percentile returns the nearest-rank percentile, p in 1 to 100, of durations
// that it sorts; 0 for none.
func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)*p+99)/100-1]
}
