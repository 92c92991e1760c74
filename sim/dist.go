package sim

import "time"

// A Dist is a distribution of durations that are not negative. The zero value is always 0. It is
// drawn from by a whole number alone, so that a draw is the same on every machine.
type Dist struct {
	text  string // how it was made, for messages
	value time.Duration
	table []time.Duration // of equally likely steps between which is interpolated; nil for a constant
}

// Constant returns the distribution that is always d.
func Constant(d time.Duration) Dist { return Dist{text: d.String(), value: d} }
