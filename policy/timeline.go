package policy

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"time"
)

const (
	maxReplays   = math.MaxUint16
	maxHorizonMs = math.MaxUint32
)

// FieldError says which field of a policy breaks which rule or limit.
type FieldError struct {
	// Field is the field's name in the text form ("unit", "replays", "gap",
	// "preference", "final", "final-preference", "completion-delivery",
	// "delivery-delay"), or "horizon" for the sum of them.
	Field string
	// Problem says what is wrong with it.
	Problem string
}

// Error returns "policy: field: problem".
func (e *FieldError) Error() string {
	return "policy: " + e.Field + ": " + e.Problem
}

// Timeline is a policy as instants: offsets from the moment a request was
// submitted. Rounds are half-open: round k is [Start(k), Start(k+1)). It is
// immutable and safe for concurrent use.
type Timeline struct {
	policy Policy
	// starts has N+3 offsets: rounds 0 to N, the final interval, the horizon.
	starts []time.Duration
	// ends has N+2 offsets: where the preference of each interval ends.
	ends []time.Duration
}

// Compile checks every rule and limit of docs/policy.md and returns the
// policy's timeline. The error is a [*FieldError].
func (p Policy) Compile() (*Timeline, error) {
	if err := p.checkFields(); err != nil {
		return nil, err
	}
	units, err := p.checkRounds()
	if err != nil {
		return nil, err
	}
	if err := p.checkHorizon(units); err != nil {
		return nil, err
	}
	if err := p.checkDelay(units); err != nil {
		return nil, err
	}

	// From here nothing overflows: every offset is at most the horizon, which
	// fits.
	t := &Timeline{
		policy: p,
		starts: make([]time.Duration, 0, p.Replays+3),
		ends:   make([]time.Duration, 0, p.Replays+2),
	}
	var at time.Duration
	for k := range p.Replays + 1 {
		t.starts = append(t.starts, at)
		t.ends = append(t.ends, at+p.Unit*time.Duration(p.Preference.At(k)))
		at += p.Unit * time.Duration(p.Gap.At(k))
	}
	t.starts = append(t.starts, at, at+p.Unit*time.Duration(p.FinalReceive))
	t.ends = append(t.ends, at+p.Unit*time.Duration(p.FinalPreference))
	return t, nil
}

// Policy returns the policy that the timeline was compiled from.
func (t *Timeline) Policy() Policy { return t.policy }

// Rounds returns N+1, the number of transmission rounds.
func (t *Timeline) Rounds() int { return len(t.ends) - 1 }

// Start returns where round k begins. k is 0 to N; N+1 gives the start of the
// final interval and N+2 the horizon.
func (t *Timeline) Start(k int) time.Duration { return t.starts[k] }

// PreferenceEnd returns the instant of round k until which the oldest server is
// waited for, Start(k) + U*P(k). k = N+1 gives that of the final interval.
func (t *Timeline) PreferenceEnd(k int) time.Duration { return t.ends[k] }

// Horizon returns the offset at which a request without an answer times out.
func (t *Timeline) Horizon() time.Duration { return t.starts[len(t.starts)-1] }

// HorizonMs returns the horizon in milliseconds, rounded up: what stands for it
// on the wire (dedup_ttl_ms) and in quotas. It is 1 to 1<<32-1.
func (t *Timeline) HorizonMs() uint32 {
	return uint32((t.Horizon() + time.Millisecond - 1) / time.Millisecond)
}

// RoundAt returns the interval that an offset lies in: 0 to N for a
// transmission round, N+1 for the final interval, N+2 at or after the horizon.
// An offset before 0 counts as 0.
func (t *Timeline) RoundAt(offset time.Duration) int {
	if offset < 0 {
		return 0
	}
	// The number of intervals that begin after 0 and at or before offset. An
	// empty final interval begins where the horizon is and is never the answer.
	return sort.Search(len(t.starts)-1, func(i int) bool { return t.starts[i+1] > offset })
}

// CompletionDelivery reports whether servers that did not answer get the
// request once more when an answer is chosen.
func (t *Timeline) CompletionDelivery() bool { return t.policy.CompletionDelivery }

// DeliveryDelay returns how long after the start of the last round in which it was
// sent they get it at the earliest: U*D, which is below the horizon.
func (t *Timeline) DeliveryDelay() time.Duration {
	return t.policy.Unit * time.Duration(t.policy.DeliveryDelay)
}

// checkFields checks each field on its own.
func (p Policy) checkFields() error {
	if p.Unit <= 0 {
		return fieldError("unit", "%v is not above 0", p.Unit)
	}
	if p.Replays < 0 || p.Replays > maxReplays {
		return fieldError("replays", "%d is not from 0 to %d", p.Replays, maxReplays)
	}
	if err := p.Gap.check(); err != nil {
		return fieldError("gap", "%v", err)
	}
	if err := p.Preference.check(); err != nil {
		return fieldError("preference", "%v", err)
	}
	if p.FinalPreference > p.FinalReceive {
		return fieldError("final-preference", "%d units are longer than the final interval of %d", p.FinalPreference, p.FinalReceive)
	}
	return nil
}

// checkRounds checks the schedules against each other in every round and
// returns the units of all intervals together. They are at most 65537 times
// 1<<32, so that the sum cannot overflow.
func (p Policy) checkRounds() (units uint64, err error) {
	for k := range p.Replays + 1 {
		gap, preference := p.Gap.At(k), p.Preference.At(k)
		if gap == 0 {
			return 0, fieldError("gap", "round %d lasts 0 units; a round lasts at least 1", k)
		}
		if preference > gap {
			return 0, fieldError("preference", "round %d waits %d units for the oldest server, but lasts %d", k, preference, gap)
		}
		units += gap
	}
	return units + uint64(p.FinalReceive), nil
}

func (p Policy) checkHorizon(units uint64) error {
	const limit = maxHorizonMs * uint64(time.Millisecond)
	hi, lo := bits.Mul64(units, uint64(p.Unit))
	if hi != 0 || lo > limit {
		return fieldError("horizon", "%d units of %v are longer than %d ms", units, p.Unit, uint32(maxHorizonMs))
	}
	return nil
}

// checkDelay checks the delivery's delay against a horizon of that many units.
func (p Policy) checkDelay(units uint64) error {
	if p.DeliveryDelay == 0 {
		return nil
	}
	if !p.CompletionDelivery {
		return fieldError("delivery-delay", "%d units delay nothing, since completion delivery is off", p.DeliveryDelay)
	}
	if uint64(p.DeliveryDelay) >= units {
		return fieldError("delivery-delay", "%d units are not below the horizon of %d", p.DeliveryDelay, units)
	}
	return nil
}

func fieldError(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
