package core

import (
	"reflect"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// The blocks that the cases are made of.
func guard(name string, threshold uint32) wire.Guard {
	return wire.Guard{Tracker: ident.Tracker(name, 1000, 10, 1), TTL: 1000, MaxSamples: 10, MinSamples: 1, Threshold: threshold}
}

func bucket(name string) wire.Resource {
	return wire.Resource{Bucket: ident.Bucket(name, 1000, 10), Window: 1000, Rate: 10, Tokens: 1}
}

// said is a block of an answer with the number in it.
type said struct {
	guard    wire.Guard
	resource wire.Resource
	number   uint32 // latency, or deficit
	rate     uint32 // of a resource
}

// TestPairing answers one question in many ways: swapped, doubled, with other
// thresholds, with too much and too little.
func TestPairing(t *testing.T) {
	tests := map[string]struct {
		ask       Request
		guards    []said
		resources []said
		verdict   DatagramVerdict
		outcome   Outcome
		latencies []uint32 // in the request's order
		passed    []bool
		deficits  []uint16
	}{
		"guards swapped": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("b", 20)}},
			guards:  []said{{guard: guard("b", 20), number: 19}, {guard: guard("a", 50), number: 49}},
			outcome: Granted, latencies: []uint32{49, 19}, passed: []bool{true, true},
		},
		"guards swapped, one fails": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("b", 20)}},
			guards:  []said{{guard: guard("b", 20), number: 49}, {guard: guard("a", 50), number: 19}},
			outcome: Rejected, latencies: []uint32{19, 49}, passed: []bool{true, false},
		},
		"one tracker, two thresholds, swapped": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("a", 20)}},
			guards:  []said{{guard: guard("a", 20), number: 19}, {guard: guard("a", 50), number: 49}},
			outcome: Granted, latencies: []uint32{49, 19}, passed: []bool{true, true},
		},
		"one tracker, two thresholds, one rewritten: the equal one pairs first": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("a", 20)}},
			guards:  []said{{guard: guard("a", 50), number: 40}, {guard: guard("a", 30), number: 10}},
			outcome: Granted, latencies: []uint32{40, 10}, passed: []bool{true, true},
		},
		"one tracker, two thresholds, both rewritten: in order": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("a", 20)}},
			guards:  []said{{guard: guard("a", 60), number: 40}, {guard: guard("a", 30), number: 25}},
			outcome: Rejected, latencies: []uint32{40, 25}, passed: []bool{true, false},
		},
		"doubled guard": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("a", 50)}},
			guards:  []said{{guard: guard("a", 50), number: 1}, {guard: guard("a", 50), number: 2}},
			outcome: Granted, latencies: []uint32{1, 2}, passed: []bool{true, true},
		},
		"doubled guard answered once, and another one": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("a", 50)}},
			guards:  []said{{guard: guard("a", 50)}, {guard: guard("b", 50)}},
			verdict: DatagramMismatch,
		},
		"asked once, answered twice": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50), guard("b", 50)}},
			guards:  []said{{guard: guard("a", 50)}, {guard: guard("a", 50)}},
			verdict: DatagramMismatch,
		},
		"the server's threshold is the lower": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50)}},
			guards:  []said{{guard: guard("a", 10), number: 10}},
			outcome: Rejected, latencies: []uint32{10}, passed: []bool{false},
		},
		"the server's threshold is the higher": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50)}},
			guards:  []said{{guard: guard("a", 90), number: 50}},
			outcome: Rejected, latencies: []uint32{50}, passed: []bool{false},
		},
		"threshold 0 never passes": {
			ask:     Request{Guards: []wire.Guard{guard("a", 0)}},
			guards:  []said{{guard: guard("a", 0), number: 0}},
			outcome: Rejected, latencies: []uint32{0}, passed: []bool{false},
		},
		"a threshold of 0 that the server wrote": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50)}},
			guards:  []said{{guard: guard("a", 0), number: 0}},
			outcome: Rejected, latencies: []uint32{0}, passed: []bool{false},
		},
		"resources rotated": {
			ask:       Request{Resources: []wire.Resource{bucket("x"), bucket("y"), bucket("z")}},
			resources: []said{{resource: bucket("z"), number: 3}, {resource: bucket("x"), number: 1}, {resource: bucket("y")}},
			outcome:   Rejected, deficits: []uint16{1, 0, 3},
		},
		"one bucket twice: in order, wherever they are": {
			ask:       Request{Resources: []wire.Resource{bucket("y"), bucket("x"), bucket("x")}},
			resources: []said{{resource: bucket("x"), number: 1}, {resource: bucket("x"), number: 2}, {resource: bucket("y")}},
			outcome:   Rejected, deficits: []uint16{0, 1, 2},
		},
		"one bucket once too often": {
			ask:       Request{Resources: []wire.Resource{bucket("y"), bucket("x")}},
			resources: []said{{resource: bucket("x")}, {resource: bucket("x")}},
			verdict:   DatagramMismatch,
		},
		"guards for resources": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50)}, Resources: []wire.Resource{bucket("x")}},
			guards:  []said{{guard: guard("a", 50)}, {guard: guard("a", 50)}},
			verdict: DatagramMismatch,
		},
		"nothing": {
			ask:     Request{Guards: []wire.Guard{guard("a", 50)}},
			verdict: DatagramMismatch,
		},
		"a resource too many": {
			ask:       Request{Resources: []wire.Resource{bucket("x")}},
			resources: []said{{resource: bucket("x")}, {resource: bucket("y")}},
			verdict:   DatagramMismatch,
		},
		"everything granted": {
			ask:       Request{Guards: []wire.Guard{guard("a", 1)}, Resources: []wire.Resource{bucket("x")}},
			guards:    []said{{guard: guard("a", 1)}},
			resources: []said{{resource: bucket("x")}},
			outcome:   Granted, latencies: []uint32{0}, passed: []bool{true}, deficits: []uint16{0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestCore(t, 1, nil)
			id, err := c.Submit(at(0), &tt.ask)
			if err != nil {
				t.Fatal(err)
			}
			answer := newResponder(t, c.cfg.Key).compose(t, c.flights.find(id).uid, serverID(0), tt.guards, tt.resources)
			if v := c.HandleDatagram(at(0), 1, answer); v != tt.verdict {
				t.Fatalf("verdict %v, want %v", v, tt.verdict)
			}
			events := drainEvents(c)
			if tt.verdict != DatagramCounted {
				if len(events) != 0 {
					t.Fatalf("events %+v", events)
				}
				return
			}
			if len(events) != 1 {
				t.Fatalf("%d events, want a completion", len(events))
			}
			got := events[0].Completion
			if got.Outcome != tt.outcome {
				t.Errorf("outcome %v, want %v", got.Outcome, tt.outcome)
			}
			var latencies []uint32
			var passed []bool
			for _, g := range got.Guards {
				latencies, passed = append(latencies, g.Latency), append(passed, g.Passed)
			}
			var deficits []uint16
			for _, r := range got.Resources {
				deficits = append(deficits, r.Deficit)
			}
			if !reflect.DeepEqual(latencies, tt.latencies) || !reflect.DeepEqual(passed, tt.passed) || !reflect.DeepEqual(deficits, tt.deficits) {
				t.Errorf("latencies %v, passed %v, deficits %v; want %v, %v, %v", latencies, passed, deficits, tt.latencies, tt.passed, tt.deficits)
			}
		})
	}
}

// TestPairingOfEverything answers a request that fills a datagram in reverse.
func TestPairingOfEverything(t *testing.T) {
	c := newTestCore(t, 1, nil)
	var ask Request
	var resources []said
	for n := 0; wire.RequestSize(c.credential.Auth(), wire.Layout2, 0, n+1, 0) <= wire.MaxDatagram; n++ {
		ask.Resources = append(ask.Resources, bucket(string(rune('a'+n/2)))) // each twice
	}
	for i := len(ask.Resources) - 1; i >= 0; i-- {
		resources = append(resources, said{resource: ask.Resources[i], number: uint32(i)})
	}
	id, err := c.Submit(at(0), &ask)
	if err != nil {
		t.Fatal(err)
	}
	answer := newResponder(t, c.cfg.Key).compose(t, c.flights.find(id).uid, serverID(0), nil, resources)
	if v := c.HandleDatagram(at(0), 1, answer); v != DatagramCounted {
		t.Fatalf("verdict %v", v)
	}
	got := drainEvents(c)[0].Completion
	for i, r := range got.Resources {
		// The pairs come in reverse, and within a pair in the answer's order.
		want := uint16(i ^ 1)
		if len(ask.Resources)%2 == 1 && i == len(ask.Resources)-1 {
			want = uint16(i)
		}
		if r.Deficit != want {
			t.Errorf("resource %d: deficit %d, want %d", i, r.Deficit, want)
		}
	}
}
