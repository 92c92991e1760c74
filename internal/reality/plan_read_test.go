package reality

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/relay"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// What a stage makes happen is what the scenario says.
func TestPlan(t *testing.T) {
	yes, no := true, false
	for name, want := range map[string][]change{
		"partition": {
			{at: 3 * time.Second, cut: [2]bool{true, true}},
			{at: 7 * time.Second, cut: [2]bool{true, true}, up: true},
		},
		"partition-answers": {
			{at: 3 * time.Second, cut: [2]bool{false, true}},
			{at: 7 * time.Second, cut: [2]bool{false, true}, up: true},
		},
		"restart": {
			{at: 3 * time.Second, kill: true},
			{at: 3500 * time.Millisecond, listed: &no},
			{at: 5 * time.Second, kill: true, up: true},
			{at: 5500 * time.Millisecond, listed: &yes},
		},
		"constant": nil,
	} {
		p, err := newPlan(load(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p.changes, want) {
			t.Errorf("%s: what happens is %+v", name, p.changes)
		}
	}
	p, err := newPlan(load(t, "constant"))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range p.ways {
		way := relay.Way{Delay: sim.Constant(time.Duration(5+i) * time.Millisecond)}
		if w != [2]relay.Way{way, way} {
			t.Errorf("server %d is behind %+v", i, w)
		}
	}
	if n := len(p.submits); n < 2800 || n > 3200 {
		t.Errorf("%d requests are made", n)
	}
}

// A scenario with something that the stage does not have is refused, and not played without it.
func TestPlanRefuses(t *testing.T) {
	const head = "purpose: None.\nlength: 1s\nbuckets: {shop: 1/s}\nclients: {web: {count: 2, poisson: 5/s, ask: shop}}\n"
	for text, want := range map[string]string{
		"trackers: {db: }":                                                       "trackers",
		"dns: {delay: 5ms}":                                                      "DNS",
		"servers: {A: {service: 1ms}, B: }":                                      "server A",
		"network: {delay: 5ms, duplicate: 1%}":                                   "delay and loss",
		"network: {between: web/0, delay: 5ms}":                                  "does not tell clients apart",
		"faults: [{at: 0s, for: 1s, pause: A}]":                                  "cannot do pause",
		"faults: [{at: 0s, for: 1s, partition: web/1}]":                          "does not tell clients apart",
		"servers: {A: {age: 1h}, B: {age: 2h}}":                                  "the oldest first",
		"warmup: 500ms":                                                          "warmup",
		"faults: [{at: 0s, for: 1s, partition: {from: web/1, to: A}}]":           "does not tell clients apart",
		"faults: [{at: 0s, for: 1s, delay: {between: A, by: 30ms}}]":             "cannot do delay",
		"network: {delay: 5ms, burst_loss: {enter: 1%, leave: 20%, loss: 100%}}": "delay and loss",
	} {
		s, err := scenario.Parse([]byte(head+text+"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := newPlan(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Under every seed the requests of the first are made, by the same clients.
func TestSameRequests(t *testing.T) {
	s := load(t, "loss")
	p, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	same, err := sameRequests(s)
	if err != nil {
		t.Fatal(err)
	}
	var got []submit
	if _, err := sim.Run(same, 5, recorder(func(r *sim.Record) {
		if r.Kind == sim.RecordSubmit {
			got = append(got, submit{At: r.At, Client: r.Client})
		}
	})); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(p.submits) {
		t.Errorf("%d requests under another seed are not the %d of the first", len(got), len(p.submits))
	}
}
