package simtune

import (
	"math"
	"slices"
)

// alikeShare is which share of the greater of two values is no difference, so that chance in the last
// digit keeps nobody on the front.
const alikeShare = 0.01

// alikePoints is the same in the measures' own units, for values near zero.
var alikePoints = Values{P50: 0.01, P99: 0.01, P999: 0.01, Undecided: 0.002, False: 0.01, Excess: 0.01, Datagrams: 0.01}

// alike tells whether two values of a measure are no difference to anybody.
func alike(m Measure, a, b float64) bool {
	return math.Abs(a-b) <= max(alikePoints[m], alikeShare*max(a, b))
}

// dominates tells whether a is better than b in some measure and worse in none.
func dominates(a, b Values) bool {
	better := false
	for _, m := range Measures() {
		switch {
		case alike(m, a[m], b[m]):
		case a[m] > b[m]:
			return false
		default:
			better = true
		}
	}
	return better
}

// same tells whether no measure tells a from b.
func same(a, b Values) bool {
	for _, m := range Measures() {
		if !alike(m, a[m], b[m]) {
			return false
		}
	}
	return true
}

// front tells which values no other dominates. Since small differences are none, some may dominate each other
// in a circle: who dominates in the end whoever dominates it is on the front, too.
func front(all []Values) []bool {
	on := make([]bool, len(all))
	for i := range all {
		on[i] = true
		for j := range all {
			if i != j && dominates(all[j], all[i]) {
				on[i] = false
				break
			}
		}
	}
	left := slices.Clone(on) // on the front, or behind somebody who is
	for i, is := range on {
		if is {
			markBehind(all, i, left)
		}
	}
	for i := range all {
		if left[i] {
			continue
		}
		behind := make([]bool, len(all))
		markBehind(all, i, behind)
		on[i] = true
		for j := range all {
			on[i] = on[i] && (behind[j] || !dominates(all[j], all[i]))
		}
	}
	return on
}

// markBehind marks who is dominated by values, or by who is.
func markBehind(all []Values, i int, behind []bool) {
	for j := range all {
		if !behind[j] && dominates(all[i], all[j]) {
			behind[j] = true
			markBehind(all, j, behind)
		}
	}
}
