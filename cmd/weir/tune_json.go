package main

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/sim"
)

// tuneJSON is what weir tune came to.
type tuneJSON struct {
	RTT         string           `json:"rtt"`
	Loss        string           `json:"loss"`
	Servers     int              `json:"servers"`
	Objective   string           `json:"objective"`
	Seed        string           `json:"seed"` // many JSON readers lose digits of 64-bit numbers
	Scenarios   []tuneScenario   `json:"scenarios"`
	Policies    []tunePolicy     `json:"policies"` // the default first
	Recommended string           `json:"recommended"`
	Policy      string           `json:"policy"` // for --policy
	Saves       tuneSaves        `json:"saves"`
	Refuted     string           `json:"refuted,omitempty"`
	Why         []tuneChangeJSON `json:"why"`
	Tried       int              `json:"policies_tried"`
	Trials      int              `json:"trials"`
	Confirm     []string         `json:"confirming_seeds"`
}

type tuneScenario struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

type tunePolicy struct {
	Name       string                        `json:"name"`
	Policy     string                        `json:"policy"`
	Front      bool                          `json:"pareto_front"`
	Cost       sim.Spread                    `json:"cost"`
	Measures   []sim.Spread                  `json:"measures"` // over all scenarios
	ByScenario map[string]map[string]float64 `json:"by_scenario"`
	Breaches   []tuneBreach                  `json:"beyond_guards"`
}

type tuneBreach struct {
	Measure  string  `json:"measure"`
	Scenario string  `json:"scenario,omitempty"` // none is all together
	Value    float64 `json:"value"`
	Allowed  float64 `json:"allowed"`
}

// tuneSaves is of the default's cost, in percent.
type tuneSaves struct {
	Percent float64 `json:"percent"`
	Low     float64 `json:"low_95"`
	High    float64 `json:"high_95"`
}

type tuneChangeJSON struct {
	From   string           `json:"from"`
	To     string           `json:"to"`
	Saves  float64          `json:"saves_percent"`
	Gains  []tuneEffectJSON `json:"gains"`
	Losses []tuneEffectJSON `json:"losses"`
}

type tuneEffectJSON struct {
	Measure string  `json:"measure"`
	Without float64 `json:"without"`
	With    float64 `json:"with"`
}

func writeTuneJSON(w io.Writer, c *tuneCmd, r *simtune.Result) error {
	best := &r.Rows[r.Recommended]
	j := tuneJSON{
		RTT: c.RTT, Loss: c.Loss, Servers: c.Servers, Objective: r.Objective.Name, Seed: strconv.FormatUint(c.Seed, 10),
		Recommended: best.Name, Policy: simtune.Text(best.Policy), Saves: tuneSaves{r.Gain, r.GainLow, r.GainHigh}, Refuted: r.Refuted,
		Why: []tuneChangeJSON{}, Tried: r.Tried, Trials: r.Trials,
	}
	for i, name := range r.Scenarios {
		j.Scenarios = append(j.Scenarios, tuneScenario{name, r.Weights[i]})
	}
	for _, seed := range r.ConfirmSeeds {
		j.Confirm = append(j.Confirm, strconv.FormatUint(seed, 10))
	}
	for i := range r.Rows {
		j.Policies = append(j.Policies, policyJSON(r, &r.Rows[i]))
	}
	for _, change := range r.Changes {
		j.Why = append(j.Why, tuneChangeJSON{change.From, change.To, change.Saves, effectsJSON(change.Gains), effectsJSON(change.Losses)})
	}
	return json.NewEncoder(w).Encode(j)
}

func policyJSON(r *simtune.Result, row *simtune.Row) tunePolicy {
	p := tunePolicy{
		Name: row.Name, Policy: simtune.Text(row.Policy), Front: row.Front, Cost: row.Cost, Measures: row.Cells,
		ByScenario: make(map[string]map[string]float64), Breaches: []tuneBreach{},
	}
	for i, name := range r.Scenarios {
		values := make(map[string]float64)
		for _, m := range simtune.Measures() {
			values[m.Name()] = row.ByScenario[i][m]
		}
		p.ByScenario[name] = values
	}
	for _, b := range row.Breaches {
		breach := tuneBreach{Measure: b.Measure.Name(), Value: b.Value, Allowed: b.Bound}
		if b.Scenario >= 0 {
			breach.Scenario = r.Scenarios[b.Scenario]
		}
		p.Breaches = append(p.Breaches, breach)
	}
	return p
}

func effectsJSON(effects []simtune.Effect) []tuneEffectJSON {
	all := []tuneEffectJSON{}
	for _, e := range effects {
		all = append(all, tuneEffectJSON{e.Measure.Name(), e.Without, e.With})
	}
	return all
}
