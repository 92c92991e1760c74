package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// everything says something of every field that a scenario has.
const everything = `
name: it
purpose: A sentence.
length: 20s
warmup: 1s
policy: strict-oldest
fail_fast: {timeouts: 5, probe: 2s}
refresh: {interval: 30s, min: 2s, forced: 3s, backoff: 4s, backoff_max: 20s, timeout: 5s, grace: 1s}
layout: 1
auth: aes
quotas: {rate_buckets: 1024}
buckets: {shop: 100/s, user: {limit: 10, window: 250ms, count: 100, zipf: 1.25}}
trackers: {db: {ttl: 2s, max_samples: 16, min_samples: 3}}
servers:
  '*': {workers: 2, queue: 64, service: 20us, steering: on, clock: -1s, estimator: p99, pacing: on, probe: 500ms}
  A: {age: 1h, mode: shadow, identities: 1000, answer_bytes: 4096, skew: 3s}
  B: {workers: 4}
clients:
  web: {count: 2, clock: 1s, max_in_flight: 7, burst: {size: 3, rate: 50/s}, start: 1s, stop: 9s, ask: {take: {shop: 2}, guard: {db: 5ms}, work: db, weight: 3}}
  loop: {closed: {callers: 4, think: 1ms}, ask: user}
  tape: {trace: file arrivals.txt, ask: [shop, user]}
network:
  - {delay: 1ms, fifo: on, loss: 1.25%, burst_loss: {enter: 1%, leave: 20%, loss: 90%}, duplicate: 0.0001%, reorder: {chance: 2%, late: 3ms}}
dns: {ttl: 10s, delay: 1ms, join: 2s, leave: never, propagation: uniform 0s 4s, members: [A]}
services: {db: {parallel: 2, time: 4ms, tracker: db, sample: 10, queue: 9}}
faults:
  - {at: 1s, for: 2s, loss: {between: web, chance: 10%}}
  - {delay: {from: A, by: 5ms}}
  - {pause: A}
  - {work: {service: db, by: 1ms}}
  - {clock: {clients: web/1, by: -5s}}
  - {dns: [B]}
`

// TestEveryFieldCanBeSet holds that a file can say whatever a scenario has.
func TestEveryFieldCanBeSet(t *testing.T) {
	s, err := Parse([]byte(everything), beside)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	walk(reflect.ValueOf(*s), set)
	for field, ok := range set {
		if !ok {
			t.Errorf("nothing in the file sets %s", field)
		}
	}
	if len(set) < 90 {
		t.Errorf("only %d fields were looked at", len(set))
	}
}

// walk notes of every field of every struct in v whether it is set in one of them.
func walk(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
			set[name] = set[name] || !f.IsZero()
			switch f.Type() {
			case reflect.TypeFor[sim.Dist](), reflect.TypeFor[policy.Policy]():
			default:
				walk(f, set)
			}
		}
	}
}

// TestReading holds what single values and the shorter forms are read as.
func TestReading(t *testing.T) {
	s, err := Parse([]byte(everything), beside)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a limit in one", s.Buckets[0], sim.Bucket{Name: "shop", Limit: 100, Window: time.Second}},
		{"a limit in two", s.Buckets[1], sim.Bucket{Name: "user", Limit: 10, Window: 250 * time.Millisecond, Count: 100, Zipf: 125}},
		{"what is of all servers", s.Servers[0].Workers, 2},
		{"but not of one", s.Servers[1].Workers, 4},
		{"ages", []time.Duration{s.Servers[0].Age, s.Servers[1].Age}, []time.Duration{time.Hour, time.Hour}},
		{"a rate", s.Clients[0].Arrivals.Every, 20 * time.Millisecond},
		{"a name alone", s.Clients[1].Mix, []sim.Choice{{Take: []sim.Take{{Bucket: "user", Tokens: 1}}}}},
		{"a trace", s.Clients[2].Arrivals.Times, []time.Duration{1e6, 1e6, 4e6, 4e6}},
		{"a percentage", s.Links[0].Loss, sim.PerMillion(12500)},
		{"the least percentage", s.Links[0].Duplicate, sim.PerMillion(1)},
		{"the link of all", []any{s.Links[0].From, s.Links[0].To, s.Links[0].Both}, []any{"*", "*", true}},
		{"never", s.DNS.Leave, time.Duration(-1)},
		{"between one and all", []any{s.Faults[0].From, s.Faults[0].To, s.Faults[0].Both}, []any{"web", "*", true}},
		{"one way", []any{s.Faults[1].From, s.Faults[1].To, s.Faults[1].Both}, []any{"A", "*", false}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, c.got, c.want)
		}
	}
	small, err := Parse([]byte("clients: {w: {constant: 7/s, ask: b}}\nbuckets: {b: 30/m}\nfaults: [{partition: A}, {dns: fails}]\nnetwork: {delay: file rtt.txt}\n"), beside)
	if err != nil {
		t.Fatal(err)
	}
	if len(small.Servers) != 3 || small.Servers[0].Name != "A" || small.Servers[0].Age <= small.Servers[2].Age || !small.Servers[1].Pacing || small.Length != 10*time.Second || small.Policy != policy.Default() {
		t.Errorf("the defaults are %+v", small)
	}
	if every := small.Clients[0].Arrivals.Every; every != 142_857_143 {
		t.Errorf("seven in a second are one every %v", every)
	}
	if d := small.Links[0].Delay; d.At(15<<60) != time.Millisecond || d.At(1<<64-1) != 2*time.Millisecond {
		t.Errorf("of 20 times 1 ms and once 2 ms nine tenths are up to %v, all up to %v", d.At(15<<60), d.At(1<<64-1))
	}
	if small.Clients[0].Arrivals.Kind != sim.ArriveConstant {
		t.Errorf("the arrivals are %+v", small.Clients[0].Arrivals)
	}
	if f := small.Faults; f[0].From != "A" || f[0].To != "*" || !f[0].Both || f[1].Kind != sim.FaultResolver {
		t.Errorf("the faults are %+v", f)
	}
}

// TestWords holds what words stand for in place of numbers, and the names of arrivals and faults
// for what kind each is.
func TestWords(t *testing.T) {
	s, err := Parse([]byte(strings.Replace(strings.Replace(whole, "services:", "#", 1), "clients:", "#", 1)+`
services: {db: {parallel: unlimited, sample: none, queue: unlimited, tracker: db}}
clients:
  a: {constant: 1/s, ask: shop}
  b: {poisson: 1/s, ask: shop}
  c: {burst: {size: 1, rate: 1/s}, ask: shop}
  d: {closed: 1, ask: shop}
  e: {trace: file arrivals.txt, ask: shop}
faults:
  - {partition: A}
  - {loss: {chance: 1%}}
  - {delay: {by: 1ms}}
  - {pause: A}
  - {slow: {server: A, by: 1ms}}
  - {kill: A}
  - {forget: A}
  - {clock: {server: A, by: 1s}}
  - {dns: [A]}
  - {dns: empty}
  - {dns: fails}
  - {dns: stranger}
  - {work: {service: db, by: 1ms}}
`), beside)
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Services[0]; w.Parallel >= 0 || w.Sample >= 0 || w.Queue != 0 {
		t.Errorf("the words stand for %+v", w)
	}
	for i, c := range s.Clients {
		if want := sim.ArriveConstant + sim.ArrivalKind(i); c.Arrivals.Kind != want {
			t.Errorf("clients %s have arrivals of kind %d, want %d", c.Name, c.Arrivals.Kind, want)
		}
	}
	for i, f := range s.Faults {
		if want := sim.FaultPartition + sim.FaultKind(i); f.Kind != want {
			t.Errorf("fault %d is a %v, want a %v", i, f.Kind, want)
		}
	}
}

// TestVariants holds what a variant keeps, changes, and is named.
func TestVariants(t *testing.T) {
	f, err := ParseFile([]byte(whole+"network: {delay: 1ms, loss: 1%}\nfaults: [{kill: A}]\nvariants:\n  far: {network: {delay: 9ms}, faults: []}\n  four: {servers: {B: {workers: 4}}, purpose: Other.}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.setName("shop")
	far, four := f.Variants[0], f.Variants[1]
	if far.Name != "shop/far" || four.Name != "shop/four" || four.Purpose != "Other." {
		t.Errorf("the names are %s and %s", far.Name, four.Name)
	}
	if l := far.Links[0]; l.Delay != sim.Constant(9*time.Millisecond) || l.Loss != 10_000 || len(far.Faults) != 0 {
		t.Errorf("the first variant is %+v", far)
	}
	if len(four.Servers) != 4 || four.Servers[1].Workers != 4 || len(four.Faults) != 1 || f.Scenario.Servers[1].Workers != 0 || f.Scenario.Links[0].Delay != sim.Constant(time.Millisecond) {
		t.Errorf("the second is %+v, of %+v", four, f.Scenario)
	}
}
