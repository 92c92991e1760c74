package policy

import "time"

// Policy is the numbers of the request policy (docs/policy.md). The zero value
// is no policy: [Policy.Compile] refuses it. Policies are equal when == says so.
type Policy struct {
	// Unit is the base duration U, above 0. All other times are multiples of it.
	Unit time.Duration
	// Replays is N, how often a request is sent again after the first time: 0 to
	// 65535. There are N+1 transmission rounds.
	Replays int
	// Gap is B: how many units each transmission round lasts, at least 1.
	Gap Schedule
	// Preference is P: for how many units of each round an answer of the oldest
	// server is preferred to the others. P(k) is at most B(k).
	Preference Schedule
	// FinalReceive is F, the units of the interval after round N in which the
	// client receives and no longer sends. It may be 0.
	FinalReceive uint32
	// FinalPreference is Pf, which is to the final interval what P is to a round.
	// It is at most F.
	FinalPreference uint32
	// CompletionDelivery says whether a request whose answer is chosen is sent
	// once more to the servers that did not answer, so that they count it too.
	CompletionDelivery bool
	// DeliveryDelay is D, how many units a server that was sent the request has to
	// answer it before it gets it again by completion delivery. They count from the
	// start of the last round in which the request was sent. Completion delivery
	// happens with the decision if they are over by then, as with 0, or would not be
	// before the horizon; else when they are, and goes to those that have not
	// answered by then. D is below the horizon, and 0 without completion delivery.
	DeliveryDelay uint32
}

// IsZero reports whether p is the zero Policy, which stands for "not
// configured".
func (p Policy) IsZero() bool {
	return p == Policy{}
}
