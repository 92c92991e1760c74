package simtune

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/policy"
)

// The axes of the grid. Each is one idea of a policy, so that a step along one of them is a change
// that can be told in words.
const (
	axisRound    = iota // how long round 0 lasts
	axisPrefer          // for how many quarters of round 0 the oldest server is preferred
	axisLater           // whether it is in later rounds, too, for the same share
	axisReplays         // N
	axisGrowth          // how later rounds grow
	axisFinal           // how long the final interval is, in rounds 0
	axisFinalPre        // whether the oldest server is preferred in it, for the same share
	axisDelivery        // completion delivery, and how long it waits
	axes
)

// parts is how many units round 0 has on the grid, so that preferences can be parts of it.
const parts = 4

// A point is a place on the grid: an index into the values of each axis.
type point [axes]int

// rounds are the lengths of round 0 that are tried. Timers of real clients, and pauses of their
// hosts, make anything below a millisecond a promise that is not kept.
var rounds = []time.Duration{
	1000 * time.Microsecond, 1500 * time.Microsecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond,
	6 * time.Millisecond, 8 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond,
	30 * time.Millisecond, 40 * time.Millisecond, 60 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond, 800 * time.Millisecond,
}

var (
	replayCounts = []int{0, 1, 2, 3, 4, 6, 8}
	finals       = []uint32{0, 2, 4, 8, 16, 32, 64, 128, 256} // in quarters of a round 0
	// deliveries are how long servers have before completion delivery, in quarters of a round 0. The
	// first stands for none at all.
	deliveries = []uint32{0, 0, 1, 2, 4, 8, 16}
)

// The values of axisGrowth.
const (
	growNot = iota
	growLinear
	growDouble
)

// sizes is how many values each axis has.
var sizes = point{len(rounds), parts + 1, 2, len(replayCounts), 3, len(finals), 2, len(deliveries)}

// defaultPoint is where the default policy is.
var defaultPoint = point{
	axisRound: slices.Index(rounds, 20*time.Millisecond), axisPrefer: parts, axisReplays: 1,
	axisFinal: slices.Index(finals, parts), axisDelivery: 1,
}

// normal takes out what makes no difference, so that one policy is one point.
func (pt point) normal() point {
	if replayCounts[pt[axisReplays]] == 0 {
		pt[axisLater], pt[axisGrowth] = 0, growNot
	}
	if pt[axisPrefer] == 0 {
		pt[axisLater], pt[axisFinalPre] = 0, 0
	}
	if finals[pt[axisFinal]]*uint32(pt[axisPrefer])/parts == 0 { // less than a unit
		pt[axisFinalPre] = 0
	}
	return pt
}

// policy returns the policy at a point, in its shortest form.
func (pt point) policy() policy.Policy {
	pt = pt.normal()
	unit := rounds[pt[axisRound]] / parts
	prefer, final := uint32(pt[axisPrefer]), finals[pt[axisFinal]]
	delay, finalPre := deliveries[pt[axisDelivery]], uint32(0)
	if pt[axisFinalPre] == 1 {
		finalPre = final * prefer / parts
	}
	// What all numbers have in common goes into the unit.
	common := uint32(parts)
	for _, n := range []uint32{prefer, final, finalPre, delay} {
		common = gcd(common, n)
	}
	unit *= time.Duration(common)
	one, prefer := parts/common, prefer/common
	p := policy.Policy{
		Unit: unit, Replays: replayCounts[pt[axisReplays]], FinalReceive: final / common, FinalPreference: finalPre / common,
		CompletionDelivery: pt[axisDelivery] > 0, DeliveryDelay: delay / common,
	}
	p.Gap = grown(pt[axisGrowth], one)
	switch {
	case prefer == 0:
		p.Preference = policy.Fixed(0)
	case pt[axisLater] == 0 && p.Replays > 0:
		p.Preference = policy.List(prefer, 0)
	default:
		p.Preference = grown(pt[axisGrowth], prefer)
	}
	return p
}

// grown is a schedule that begins with so many units. It grows to four times that.
func grown(how int, initial uint32) policy.Schedule {
	switch how {
	case growLinear:
		return policy.Linear(initial, initial, 4*initial)
	case growDouble:
		return policy.Exponential(initial, 2, 4*initial)
	}
	return policy.Fixed(initial)
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// neighbors are the points one step away.
func (pt point) neighbors() []point {
	var all []point
	for axis := range pt {
		for _, step := range []int{-1, 1} {
			next := pt
			next[axis] += step
			if next[axis] < 0 || next[axis] >= sizes[axis] {
				continue
			}
			all = append(all, next)
		}
	}
	return all
}

// words says what a point's value on an axis is.
func (pt point) words(axis int) string {
	quarters := [...]string{"for none", "for a quarter", "for half", "for three quarters", "for all"}
	switch axis {
	case axisRound:
		return fmt.Sprintf("round 0 lasts %v", rounds[pt[axisRound]])
	case axisPrefer:
		return fmt.Sprintf("the oldest server is preferred %s of round 0", quarters[pt[axisPrefer]])
	case axisLater:
		return [...]string{"nobody is preferred in later rounds", "the oldest server is preferred in later rounds, too"}[pt[axisLater]]
	case axisReplays:
		if replayCounts[pt[axisReplays]] == 1 {
			return "1 replay at most"
		}
		return fmt.Sprintf("%d replays at most", replayCounts[pt[axisReplays]])
	case axisGrowth:
		return [...]string{"rounds are of one length", "each round is longer than the one before by round 0", "each round is twice as long as the one before"}[pt[axisGrowth]]
	case axisFinal:
		if finals[pt[axisFinal]] == parts {
			return "the final interval is as long as round 0"
		}
		return fmt.Sprintf("the final interval is %g times as long as round 0", float64(finals[pt[axisFinal]])/parts)
	case axisFinalPre:
		return [...]string{"nobody is preferred in the final interval", "the oldest server is preferred in the final interval, too"}[pt[axisFinalPre]]
	}
	switch pt[axisDelivery] {
	case 0:
		return "no completion delivery"
	case 1:
		return "completion delivery with the decision"
	}
	return fmt.Sprintf("completion delivery only to servers that have been asked for %v without an answer", rounds[pt[axisRound]]*time.Duration(deliveries[pt[axisDelivery]])/parts)
}
