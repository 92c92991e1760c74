package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/policy"
)

func TestParse(t *testing.T) {
	changed := policy.StrictOldest()
	changed.Unit = 1500 * time.Microsecond
	changed.Replays = 2
	changed.Gap = policy.Exponential(1, 2, 8)
	changed.CompletionDelivery = false
	delayed := policy.Default()
	delayed.DeliveryDelay = 2
	for _, c := range []struct {
		text string
		want policy.Policy
	}{
		{"", policy.Default()},
		{" \t\n", policy.Default()},
		{"default", policy.Default()},
		{"  strict-oldest  ", policy.StrictOldest()},
		{"strict-oldest unit=1.5ms replays=2 gap=exponential:1:2:8 completion-delivery=off", changed},
		{"replays=65535 gap=fixed:1 preference=fixed:0 final=0", policy.Policy{
			Unit: 20 * time.Millisecond, Replays: 65535, Gap: policy.Fixed(1), Preference: policy.Fixed(0), CompletionDelivery: true,
		}},
		{"final=3\tfinal-preference=2 preference=list:1,0,1", policy.Policy{
			Unit: 20 * time.Millisecond, Replays: 1, Gap: policy.Fixed(1), Preference: policy.List(1, 0, 1), FinalReceive: 3, FinalPreference: 2, CompletionDelivery: true,
		}},
		{"unit=20ms replays=1 gap=fixed:1 preference=list:1,0 final=1 final-preference=0 completion-delivery=on", policy.Default()},
		{"delivery-delay=2 completion-delivery=on", delayed},
		{"delivery-delay=0 completion-delivery=off", policy.Policy{
			Unit: 20 * time.Millisecond, Replays: 1, Gap: policy.Fixed(1), Preference: policy.List(1, 0), FinalReceive: 1,
		}},
	} {
		got, err := policy.Parse(c.text)
		if err != nil || got != c.want {
			t.Errorf("Parse(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	if got, want := policy.Default().String(), "unit=20ms replays=1 gap=fixed:1 preference=list:1,0 final=1 final-preference=0 completion-delivery=on"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := delayed.String(), policy.Default().String()+" delivery-delay=2"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, field, say string }{
		{"newest", "", "no preset"},
		{"unit=20ms strict-oldest", "", "not of the form"},
		{"default strict-oldest", "", "not of the form"},
		{"color=red", "", "no field"},
		{"=1", "", "no field"},
		{"unit=20ms unit=20ms", "unit", "twice"},
		{"unit=20", "unit", "no duration"},
		{"unit=", "unit", "no duration"},
		{"unit=-1ms", "unit", "not above 0"},
		{"replays=-1", "replays", "0 to 65535"},
		{"replays=65536", "replays", "0 to 65535"},
		{"gap=1", "gap", "no schedule"},
		{"gap=fixed:0 preference=fixed:0", "gap", "at least 1"},
		{"gap=linear:1:0:4", "gap", "step is 0"},
		{"preference=exponential:2:2:1", "preference", "above the max"},
		{"preference=fixed:2", "preference", "round 0 waits 2 units"},
		{"final=x", "final", "0 to 4294967295"},
		{"final-preference=4294967296", "final-preference", "0 to 4294967295"},
		{"final-preference=2", "final-preference", "longer than the final interval"},
		{"completion-delivery=yes", "completion-delivery", "neither on nor off"},
		{"final=4294967295", "horizon", "longer than 4294967295 ms"},
		{"delivery-delay=20ms", "delivery-delay", "0 to 4294967295"},
		{"delivery-delay=3", "delivery-delay", "3 units are not below the horizon of 3"},
		{"delivery-delay=1 completion-delivery=off", "delivery-delay", "delay nothing"},
	} {
		p, err := policy.Parse(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "policy: ") || !strings.Contains(err.Error(), c.say) || !p.IsZero() {
			t.Errorf("Parse(%q) = %v, %v; want an error that says %q", c.text, p, err, c.say)
			continue
		}
		var field *policy.FieldError
		if errors.As(err, &field) != (c.field != "") || field != nil && field.Field != c.field {
			t.Errorf("Parse(%q): error %v names %v, want %q", c.text, err, field, c.field)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Uint32Range(1, 9)
		gap := policy.Linear(units.Draw(t, "gap"), units.Draw(t, "step"), 20)
		p := policy.Policy{
			Unit:               time.Duration(rapid.OneOf(rapid.Int64Range(1, 1e4), rapid.Int64Range(1, 1e11)).Draw(t, "unit")),
			Replays:            rapid.IntRange(0, 100).Draw(t, "replays"),
			Gap:                gap,
			Preference:         policy.List(rapid.SliceOfN(rapid.Uint32Range(0, 1), 1, 5).Draw(t, "preference")...),
			FinalReceive:       units.Draw(t, "final"),
			FinalPreference:    rapid.Uint32Range(0, 1).Draw(t, "final preference"),
			CompletionDelivery: rapid.Bool().Draw(t, "delivery"),
		}
		if p.CompletionDelivery {
			p.DeliveryDelay = rapid.Uint32Range(0, uint32(p.Replays)+1).Draw(t, "delay")
		}
		back, err := policy.Parse(p.String())
		if err != nil || back != p {
			t.Errorf("%v came back as %v, %v", p, back, err)
		}
	})
}

func parseTarget() *storm.Target {
	target := storm.New("FuzzParse", func(t testing.TB, text string) {
		p, err := policy.Parse(text)
		if err != nil {
			if !p.IsZero() {
				t.Fatalf("Parse(%q) = %v beside an error", text, p)
			}
			return
		}
		tl, err := p.Compile()
		if err != nil {
			t.Fatalf("Parse(%q) gives what does not compile: %v", text, err)
		}
		if tl.Horizon() <= 0 || tl.HorizonMs() == 0 || time.Duration(tl.HorizonMs())*time.Millisecond < tl.Horizon() {
			t.Fatalf("Parse(%q): horizon %v, %d ms", text, tl.Horizon(), tl.HorizonMs())
		}
		if back, err := policy.Parse(p.String()); err != nil || back != p {
			t.Fatalf("%q is written %q, which reads %v, %v", text, p, back, err)
		}
	})
	for _, name := range policy.PresetNames() {
		p, _ := policy.Preset(name)
		target.Add(name)
		target.Add(p.String())
	}
	target.Add("strict-oldest unit=1.5ms replays=2 gap=exponential:1:2:8 completion-delivery=off")
	target.Add("replays=3 final=0 delivery-delay=3")
	target.Add("unit=2562047h47m16.854775807s")
	target.Add("replays=65535 gap=fixed:4294967295 unit=1h")
	return target
}

func FuzzParse(f *testing.F)      { parseTarget().Fuzz(f) }
func TestStormParse(t *testing.T) { parseTarget().Storm(t) }
