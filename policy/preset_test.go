package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

func TestPresets(t *testing.T) {
	want := []string{"default", "strict-oldest", "oldest-preferred", "fastest-valid", "bounded-collection"}
	if got := policy.PresetNames(); !slices.Equal(got, want) {
		t.Errorf("PresetNames() = %q, want %q", got, want)
	}
	for _, name := range policy.PresetNames() {
		p, ok := policy.Preset(name)
		if !ok {
			t.Fatalf("Preset(%q) is unknown", name)
		}
		tl, err := p.Compile()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if tl.Horizon() != 60*time.Millisecond || tl.HorizonMs() != 60 {
			t.Errorf("%s: horizon %v, %d ms; want 60 ms", name, tl.Horizon(), tl.HorizonMs())
		}
	}
	if p, ok := policy.Preset("newest"); ok || !p.IsZero() {
		t.Errorf(`Preset("newest") = %v, %v`, p, ok)
	}
}

// TestPresetShapes holds what makes each preset what its name says, in every
// round and in the final interval.
func TestPresetShapes(t *testing.T) {
	each := func(p policy.Policy, holds func(preference, length uint64) bool) bool {
		for k := range p.Replays + 1 {
			if !holds(p.Preference.At(k), p.Gap.At(k)) {
				return false
			}
		}
		return holds(uint64(p.FinalPreference), uint64(p.FinalReceive))
	}
	for _, c := range []struct {
		name  string
		p     policy.Policy
		holds func(preference, length uint64) bool
	}{
		{"strict-oldest", policy.StrictOldest(), func(p, b uint64) bool { return p == b }},
		{"oldest-preferred", policy.OldestPreferred(), func(p, b uint64) bool { return 0 < p && p < b }},
		{"fastest-valid", policy.FastestValid(), func(p, _ uint64) bool { return p == 0 }},
		{"bounded-collection", policy.BoundedCollection(), func(p, b uint64) bool { return p == 5 && p < b }},
	} {
		if !each(c.p, c.holds) {
			t.Errorf("%s is %v", c.name, c.p)
		}
		if named, _ := policy.Preset(c.name); named != c.p {
			t.Errorf("Preset(%q) = %v, want %v", c.name, named, c.p)
		}
	}
	want := policy.Policy{
		Unit: 20 * time.Millisecond, Replays: 1, Gap: policy.Fixed(1), Preference: policy.List(1, 0),
		FinalReceive: 1, FinalPreference: 0, CompletionDelivery: true,
	}
	if got := policy.Default(); got != want {
		t.Errorf("Default() = %v, want %v", got, want)
	}
}
