package doctor

import "time"

// The fan: by how much the stamps of a volley are shifted, to find a clock that is
// wrong. A server takes a stamp that is within its skew, 5 s unless it is told
// otherwise, so steps of 10 s leave no gap.
const (
	fanStep    = 10 * time.Second
	fanDense   = 15 * time.Minute // without a gap up to here
	fanQuarter = 15 * time.Minute // then what a wrong time zone makes of a right clock
	fanZones   = 14 * time.Hour
	day        = 24 * time.Hour
)

// nearby are shifts for servers that allow less, and for one that has just started
// ahead of this clock.
var nearby = [...]time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second, 7 * time.Second}

// distant are shifts for wrong dates.
var distant = [...]time.Duration{day, 2 * day, 7 * day, 30 * day, 31 * day, 365 * day, 366 * day}

// fan returns the shifts in the order of their size, both ways.
func fan() []time.Duration {
	var steps []time.Duration
	steps = append(steps, nearby[:]...)
	for s := fanStep; s <= fanDense; s += fanStep {
		steps = append(steps, s)
	}
	for s := fanDense + fanQuarter; s <= fanZones; s += fanQuarter {
		steps = append(steps, s)
	}
	steps = append(steps, distant[:]...)
	shifts := make([]time.Duration, 0, 2*len(steps))
	for _, s := range steps {
		shifts = append(shifts, s, -s)
	}
	return shifts
}
