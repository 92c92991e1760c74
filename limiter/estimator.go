package limiter

import (
	"fmt"
	"strconv"
)

// Estimator is the statistic of a tracker's live samples that guards compare with their threshold.
// The zero value is P50.
type Estimator uint8

// The estimators. Percentiles are by nearest rank: the smallest sample that at least that share of
// the samples does not exceed.
const (
	P50  Estimator = iota // the median; of an even number of samples the lower one
	Min                   // the smallest sample
	P90                   // the 90th percentile
	P99                   // the 99th percentile
	Mean                  // the arithmetic mean in whole milliseconds, rounded down

	estimators
)

var estimatorNames = [estimators]string{P50: "p50", Min: "min", P90: "p90", P99: "p99", Mean: "mean"}

// percent is the percentile that an estimator by rank asks for; Min asks for rank 1.
var percent = [estimators]int{P50: 50, Min: 0, P90: 90, P99: 99}

// String returns "p50", "min", "p90", "p99" or "mean".
func (e Estimator) String() string {
	if e < estimators {
		return estimatorNames[e]
	}
	return "Estimator(" + strconv.Itoa(int(e)) + ")"
}

// ParseEstimator returns the estimator that [Estimator.String] names so.
func ParseEstimator(s string) (Estimator, error) {
	for e := P50; e < estimators; e++ {
		if estimatorNames[e] == s {
			return e, nil
		}
	}
	return 0, fmt.Errorf("limiter: unknown estimator %q; use p50, min, p90, p99 or mean", s)
}

// rank returns which of n >= 1 samples in order, counted from 1, the estimator asks for.
func (e Estimator) rank(n int) int {
	return max(1, (n*percent[e]+99)/100)
}
