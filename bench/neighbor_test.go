package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	generator "github.com/weirhq/weir/internal/load"
	"github.com/weirhq/weir/wire"
)

// The median of the pairs decides, of the attack for which it is worst; a run within the gate is none
// beyond it.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		pairs  [][]float64
		ratio  float64
		beyond bool
	}{
		{[][]float64{{1, 9, 1.5}}, 1.5, false},
		{[][]float64{{1, 1, 3, 3}}, 2, false},
		{[][]float64{{1, 1}, {2.5, 0.1, 2.1}, {1.2}}, 2.1, true},
	} {
		for _, asJSON := range []bool{false, true} {
			var lines, out strings.Builder
			r := neighborReport{Gate: gateNeighbor, Plan: neighborPlan{JSON: asJSON}, lines: &lines}
			for _, pairs := range c.pairs {
				row := neighborRow{Attack: "x", Pairs: pairs}
				row.finish(len(pairs))
				r.add(row)
			}
			err := r.end(&out)
			if n := strings.Count(lines.String(), "\n"); n != len(c.pairs)+1 {
				t.Errorf("%d lines: %s", n, lines.String())
			}
			if errors.Is(err, errGate) != c.beyond || r.Ratios["neighbor"] != c.ratio {
				t.Errorf("%v: %v, %v; want %v", c.pairs, r.Ratios, err, c.ratio)
			}
			var back struct{ Ratios map[string]float64 }
			if asJSON && (json.Unmarshal([]byte(out.String()), &back) != nil || back.Ratios["neighbor"] != c.ratio) {
				t.Errorf("%v: printed %s", c.pairs, out.String())
			}
		}
	}
}

func newTestAttacker(t *testing.T, tenant tenant) *attacker {
	t.Helper()
	credential, err := wire.NewCredential(tenant.key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &attacker{credential: credential, sealer: sealer, resources: make([]wire.Resource, mostResources)}
}

// Every attack's datagrams fit, each under an identity of its own, and the largest leave no room for
// another block.
func TestAttacksAreBuilt(t *testing.T) {
	tenant, err := newTenant("attacker", 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := newTestAttacker(t, tenant)
	seen := map[wire.UniqueID]bool{}
	for _, k := range kinds {
		for range 3 {
			a.buf = nil
			b, err := k.make(a)
			if err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			var e wire.Envelope
			if err := wire.ParseEnvelope(b, &e); err != nil || seen[e.Header.UniqueID] {
				t.Fatalf("%s: %v, or an identity once more", k.name, err)
			}
			seen[e.Header.UniqueID] = true
			_, err = a.credential.Open(&e, new(wire.Scratch))
			if forged := k.name == "junk"; forged != errors.Is(err, wire.ErrAuth) {
				t.Errorf("%s: opens with %v", k.name, err)
			}
			const block = 28
			if full := k.name == "largest" || k.name == "buckets"; full && len(b)+block <= wire.MaxDatagram {
				t.Errorf("%s: there is room for another block in %d bytes", k.name, len(b))
			}
		}
	}
}

// A pair in which the sender itself was late does not count, and a run with too few others is neither within the
// gate nor beyond it.
func TestNothingToJudge(t *testing.T) {
	slice := func(p99, late float64) *generator.Result {
		return &generator.Result{Latency: generator.Quantiles{P99: p99}, Lag: &generator.Quantiles{P99: late}, Latencies: hdrhistogram.New(1, 1000, 1), Lost: 1}
	}
	for _, c := range []struct {
		alone, attacked float64 // how late
		judged          bool
	}{{mostLate, mostLate, true}, {mostLate + 1, 0, false}, {0, mostLate + 1, false}} {
		row := neighborRow{Attack: "x"}
		row.take(slice(100, 1), slice(300, 1))
		row.take(slice(100, c.alone), slice(500, c.attacked))
		row.finish(2)
		r := neighborReport{Gate: gateNeighbor, lines: io.Discard}
		r.add(row)
		if err := r.end(io.Discard); err == nil || errors.Is(err, errGate) != c.judged {
			t.Errorf("%+v: %v", c, err)
		}
		if want := map[bool]float64{true: 4, false: 3}[c.judged]; row.Median != want || row.LeftOut != len(row.Pairs)%2 || row.Lost != len(row.Pairs) {
			t.Errorf("%+v: %+v", c, row)
		}
		if row.Late != max(1, c.alone) || row.LateAttacked != max(1, c.attacked) {
			t.Errorf("%+v: %+v", c, row)
		}
	}
	row := neighborRow{Attack: "x"}
	row.take(slice(100, mostLate+1), slice(500, 0))
	if row.finish(1); !row.Undecided || row.Lost != 0 {
		t.Errorf("without a pair: %+v", row)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-rate", "0"}, {"-flows", "0"}, {"-slice", "0s"}, {"-groups", "0"}, {"-share", "-1"}, {"-what"}, {"-attack", "none"}, {"more"}, {"-rate", "nan"}, {"-share", "nan"}} {
		if _, err := parseNeighbor(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	for i := range kinds {
		if p, err := parseNeighbor([]string{"-attack", kinds[i].name}); err != nil || p.Only != kinds[i].name {
			t.Errorf("%s: %v", kinds[i].name, err)
		}
	}
	p, err := parseNeighbor([]string{"-quick", "-json"})
	const between = 300 * time.Millisecond
	spent := time.Duration(len(kinds)) * (time.Second + time.Duration(2*p.pairs())*(p.Slice+between))
	if err != nil || spent > 50*time.Second || !p.JSON {
		t.Errorf("quick: %+v, %v", p, err)
	}
}
