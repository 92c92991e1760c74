package conformance

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/policy"
)

// Numbers is a request policy. The schedules are in their text form
// (docs/policy.md, "Fields").
type Numbers struct {
	Unit               int64  `json:"unit_ns"`
	Replays            int64  `json:"replays"`
	Gap                string `json:"gap"`
	Preference         string `json:"preference"`
	Final              int64  `json:"final"`
	FinalPreference    int64  `json:"final_preference"`
	CompletionDelivery bool   `json:"completion_delivery"`
	DeliveryDelay      int64  `json:"delivery_delay,omitempty"`
}

// NumbersOf returns the numbers of a policy.
func NumbersOf(p policy.Policy) Numbers {
	return Numbers{
		Unit: int64(p.Unit), Replays: int64(p.Replays), Gap: p.Gap.String(), Preference: p.Preference.String(),
		Final: int64(p.FinalReceive), FinalPreference: int64(p.FinalPreference), CompletionDelivery: p.CompletionDelivery,
		DeliveryDelay: int64(p.DeliveryDelay),
	}
}

// Text returns the text form that package policy reads.
func (n Numbers) Text() string {
	delivery := "off"
	if n.CompletionDelivery {
		delivery = "on"
	}
	return fmt.Sprintf("unit=%v replays=%d gap=%s preference=%s final=%d final-preference=%d completion-delivery=%s delivery-delay=%d",
		time.Duration(n.Unit), n.Replays, n.Gap, n.Preference, n.Final, n.FinalPreference, delivery, n.DeliveryDelay)
}

// Policy returns the policy, or the *policy.FieldError that says which field is at
// fault.
func (n Numbers) Policy() (policy.Policy, error) { return policy.Parse(n.Text()) }

// A PolicyCase is a policy and what follows from it: its timeline, or the field at
// fault.
type PolicyCase struct {
	Name   string   `json:"name"`
	Needs  []string `json:"needs,omitempty"` // as of a [Trace]
	Policy Numbers  `json:"policy"`

	// Fault is the field, by its name in the text form, that makes the policy an
	// error, and then the rest is not there: "horizon" is the sum of all.
	Fault string `json:"fault,omitempty"`

	Rounds  []Round `json:"rounds,omitempty"`
	Horizon int64   `json:"horizon_ns,omitempty"`
	// DedupTTL is the horizon in milliseconds rounded up, as a request carries it.
	DedupTTL uint32 `json:"dedup_ttl_ms,omitempty"`
}

// A Round is one interval of a timeline, as offsets from the submit. Of a policy
// with more than 40 rounds the first and last are listed. The one after the last
// transmission round is the final interval, also if it is empty.
type Round struct {
	K             int   `json:"k"`
	Start         int64 `json:"start_ns"`
	PreferenceEnd int64 `json:"preference_end_ns"`
}

// listed is up to how many rounds are all in a case; of more, edge at either end.
const (
	listed = 40
	edge   = 4
)

// NewPolicyCase works a policy out.
func NewPolicyCase(name string, n Numbers) (PolicyCase, error) {
	c := PolicyCase{Name: name, Policy: n}
	if n.DeliveryDelay != 0 {
		c.Needs = []string{NeedDeliveryDelay}
	}
	p, err := n.Policy()
	if err != nil {
		var field *policy.FieldError
		if !asFieldError(err, &field) {
			return c, fmt.Errorf("conformance: policy %s: %w", name, err)
		}
		c.Fault = field.Field
		return c, nil
	}
	t, err := p.Compile()
	if err != nil {
		return c, fmt.Errorf("conformance: policy %s: %w", name, err)
	}
	for k := range t.Rounds() + 1 {
		if t.Rounds() < listed || k < edge || k > t.Rounds()-edge {
			c.Rounds = append(c.Rounds, Round{k, int64(t.Start(k)), int64(t.PreferenceEnd(k))})
		}
	}
	c.Horizon, c.DedupTTL = int64(t.Horizon()), t.HorizonMs()
	return c, nil
}
