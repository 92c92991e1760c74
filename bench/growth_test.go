package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/wire"
)

func TestGrowthFlags(t *testing.T) {
	for _, args := range []string{"more", "-buckets 5", "-buckets 16777217", "-fill 0s", "-fill 2s -window 2s", "-window 16.0005s", "-rate 0", "-rate nan", "-pairs 0"} {
		if _, err := parseGrowth(strings.Fields(args)); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	p, err := parseGrowth([]string{"-quick", "-json"})
	if err != nil || !p.JSON || 2*time.Duration(p.Pairs)*p.cycle() > 50*time.Second {
		t.Errorf("quick: %+v, %v", p, err)
	}
}

// Each bucket is consumed from once, with as many in a request as go into one.
func TestFilling(t *testing.T) {
	tenant, err := newTenant("bench", 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	const buckets = 1000
	a := newTestAttacker(t, tenant)
	a.job = job{Buckets: buckets, Window: 3 * time.Second}
	var seen [buckets]int
	requests := 0
	for {
		b, err := a.fillNext()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		requests++
		var e wire.Envelope
		var s wire.Scratch
		var v wire.RequestView
		if err := wire.ParseEnvelope(b, &e); err != nil {
			t.Fatal(err)
		}
		pdu, err := a.credential.Open(&e, &s)
		if err == nil {
			err = wire.ParseRequest(pdu, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Resources() {
			r := v.Resource(i)
			if r.Window != 3000 || r.Rate != 10 || r.Tokens != 1 {
				t.Fatalf("%+v", r)
			}
			seen[binary.LittleEndian.Uint64(r.Bucket[:])]++
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("bucket %d was consumed from %d times", i, n)
		}
	}
	if want := (buckets + mostResources - 1) / mostResources; requests != want {
		t.Errorf("%d requests, want %d", requests, want)
	}
}

// A pair of cycles in which the sender was late, or memory slow, does not count; without enough others there is nothing to
// judge.
func TestGrowthNothingToJudge(t *testing.T) {
	side := func(p999, late float64) *growthSide {
		return &growthSide{quantiles: quantiles{P999: p999}, Late: late, Lost: 1}
	}
	for _, c := range []struct {
		ours, floor float64 // how late
		page        float64
		judged      bool
	}{{growthLate, growthLate, growthLate, true}, {growthLate + 1, 0, 0, false}, {0, growthLate + 1, 0, false}, {0, 0, growthLate + 1, false}} {
		r := growthReport{Gate: growthGate, Plan: growthPlan{Pairs: 2}, Ratios: map[string]float64{}}
		r.take(side(300, 1), side(100, 1))
		grown := side(500, c.ours)
		grown.Page = c.page
		r.take(grown, side(100, c.floor))
		if err := r.print(io.Discard); err == nil || errors.Is(err, errGate) != c.judged {
			t.Errorf("%+v: %v", c, err)
		}
		if want := map[bool]float64{true: 4, false: 3}[c.judged]; r.Ratios[growthCommand] != want || r.Ours.P999 != 500 || r.Ours.Lost != 2 {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

func TestGrowthGate(t *testing.T) {
	for ratio, beyond := range map[float64]bool{0.5: false, 2: false, 2.1: true} {
		for _, asJSON := range []bool{false, true} {
			r := growthReport{Gate: growthGate, Plan: growthPlan{JSON: asJSON}, Pairs: []float64{ratio}, Ratios: map[string]float64{growthCommand: ratio}}
			var out strings.Builder
			if err := r.print(&out); errors.Is(err, errGate) != beyond {
				t.Errorf("%v: %v", ratio, err)
			}
			var back struct{ Ratios map[string]float64 }
			if asJSON && (json.Unmarshal([]byte(out.String()), &back) != nil || back.Ratios[growthCommand] != ratio) {
				t.Errorf("%v: printed %s", ratio, out.String())
			}
		}
	}
}

// The slowest page takes some time, and all of the memory is given back.
func TestSlowestPage(t *testing.T) {
	page, err := slowestPage(1 << 20)
	if err != nil || page < 0 || runtime.GOOS == "linux" && page == 0 {
		t.Errorf("%v, %v", page, err)
	}
	if _, err := slowestPage(-1); err == nil && runtime.GOOS == "linux" {
		t.Error("less than nothing is taken")
	}
}
