package simcompare

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func small(change func(*sim.Scenario)) *sim.Scenario {
	s := &sim.Scenario{
		Name: "small", Purpose: "A small one.", Length: time.Second, Policy: policy.Default(),
		Buckets: []sim.Bucket{{Name: "shop", Limit: 50, Window: time.Second}},
		Servers: []sim.Server{{Name: "A", Age: time.Hour}, {Name: "B", Age: time.Minute}},
		Clients: []sim.Clients{{
			Name: "web", Arrivals: sim.Arrivals{Kind: sim.ArrivePoisson, Every: 10 * time.Millisecond},
			Mix: []sim.Choice{{Take: []sim.Take{{Bucket: "shop", Tokens: 1}}}},
		}},
		Links: []sim.Link{{From: "*", To: "*", Both: true, Delay: sim.Uniform(time.Millisecond, 9*time.Millisecond)}},
	}
	if change != nil {
		change(s)
	}
	return s
}

func named(t *testing.T, texts ...string) []Named {
	t.Helper()
	all, err := ParseNamed(texts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseNamed(t *testing.T) {
	strict, quick := policy.StrictOldest(), policy.Default()
	quick.Unit = 5 * time.Millisecond
	list := policy.Default()
	list.Preference = policy.List(1, 0)
	for text, want := range map[string]Named{
		"strict-oldest":        {"strict-oldest", strict},
		"mine=strict-oldest":   {"mine", strict},
		"quick=unit=5ms":       {"quick", quick},
		"unit=5ms":             {"unit=5ms", quick},
		"default  unit=5ms":    {"default unit=5ms", quick},
		"scenario":             {"scenario", policy.Policy{}},
		"it=preference=list:1": {"it", list},
	} {
		if text == "it=preference=list:1" {
			text += ",0"
		}
		if got := named(t, text)[0]; got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"stict":              `"stict": policy: "stict" is no preset; there are default, strict-oldest`,
		"mine=unit=5":        `"mine": policy: unit: "5" is no duration such as 20ms`,
		"unit=5":             `"unit=5": policy: unit: "5" is no duration such as 20ms (or give it a name`,
		"mine=":              `"mine=" has no policy's text behind it`,
		"=default":           `"": a policy's name is 1 to 60`,
		"a\x1b[31mb=default": `"a\x1b[31mb": a policy's name is 1 to 60`,
		"":                   `"": a policy's name is`,
	} {
		if _, err := ParseNamed([]string{text}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseNamed([]string{"a=default", "a=unit=5ms"}); err == nil || !strings.Contains(err.Error(), `"a" is there twice`) {
		t.Errorf("two of one name: %v", err)
	}
	if n := len(Presets()); n != len(policy.PresetNames()) || Presets()[0] != (Named{"default", policy.Default()}) {
		t.Errorf("%d presets, the first is %+v", n, Presets()[0])
	}
}

// TestPlay holds that each column is its policy's with the same seeds, however many are played
// together, and that progress goes through all of it.
func TestPlay(t *testing.T) {
	own := small(func(s *sim.Scenario) { s.Policy.Unit = 3 * time.Millisecond })
	plan := &Plan{
		Scenarios: []*sim.Scenario{small(nil), own},
		Policies:  named(t, "default", "again=default", "scenario", "strict-oldest"),
		Seed:      7, Seeds: 9,
	}
	var last, whole time.Duration
	all, err := plan.Play(t.Context(), func(played, of time.Duration) {
		if played < last {
			t.Errorf("progress goes back from %v to %v", last, played)
		}
		last, whole = played, of
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != whole || whole != 72*time.Second {
		t.Errorf("progress ends at %v of %v", last, whole)
	}
	latency := slices.IndexFunc(sim.Scalars(), func(s sim.Scalar) bool { return s.Name == "latency_mean_ms" })
	for _, c := range all {
		if len(c.Columns) != 4 || c.Seed != 7 || c.Seeds != 9 {
			t.Fatalf("%d columns from seed %d, %d seeds", len(c.Columns), c.Seed, c.Seeds)
		}
		if !slices.Equal(c.Columns[0].values[latency], c.Columns[1].values[latency]) {
			t.Errorf("%s: one policy under the same seeds comes to different latencies", c.Scenario.Name)
		}
		if c.Columns[2].Policy != c.Scenario.Policy {
			t.Errorf("the scenario's own policy is %v", c.Columns[2].Policy)
		}
		alone, err := (&Plan{Scenarios: []*sim.Scenario{c.Scenario}, Policies: plan.Policies[3:], Seed: 8, Seeds: 1}).Play(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Columns[3].values[latency][1], alone[0].Columns[0].values[latency][0]; got != want {
			t.Errorf("the second seed is %v among others and %v alone", got, want)
		}
	}
	if slices.Equal(all[0].Columns[2].values[latency], all[1].Columns[2].values[latency]) {
		t.Error("each scenario's own policy is the same")
	}
}

func TestPlanIsChecked(t *testing.T) {
	plan := func(change func(*Plan)) *Plan {
		p := &Plan{Scenarios: []*sim.Scenario{small(nil)}, Policies: named(t, "default"), Seed: 1, Seeds: 1}
		change(p)
		return p
	}
	for want, p := range map[string]*Plan{
		"nothing to compare":    plan(func(p *Plan) { p.Policies = nil }),
		"give 1 to 10000 seeds": plan(func(p *Plan) { p.Seeds = 0 }),
		"give 1 to 5000 seeds":  plan(func(p *Plan) { p.Policies, p.Seeds = named(t, "default", "strict-oldest"), 5001 }),
		"seed 184467":           plan(func(p *Plan) { p.Seed--; p.Seed-- }),
		"policy long in scenario small: sim: ": plan(func(p *Plan) {
			p.Policies = named(t, "long=unit=1h")
		}),
	} {
		if _, err := p.Play(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plan(func(*Plan) {}).Play(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled one: %v", err)
	}
}
