package policy_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

func TestPresetHorizons(t *testing.T) {
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
		back, err := policy.Parse(p.String())
		if err != nil || back != p {
			t.Errorf("%s: Parse(%q) = %+v, %v", name, p, back, err)
		}
	}
	if _, ok := policy.Preset("newest"); ok {
		t.Error(`Preset("newest") is known`)
	}
}
