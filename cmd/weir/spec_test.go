package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/storm"
)

var testTrackers = trackerFlags{TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 1, BufferSize: 16}

func TestParseResource(t *testing.T) {
	for _, c := range []struct {
		text string
		want weir.Resource
	}{
		{"checkout=100/1s", weir.Bucket("checkout", 100, time.Second).Take(1)},
		{"checkout=100/1s*5", weir.Bucket("checkout", 100, time.Second).Take(5)},
		{"checkout=100/1m30s*0", weir.Bucket("checkout", 100, 90*time.Second).Take(0)},
		{"a=b/c*d=0/0s", weir.Bucket("a=b/c*d", 0, 0).Take(1)},
		{"café, total=4294967295/4294967295ms*65535", weir.Bucket("café, total", 4294967295, 4294967295*time.Millisecond).Take(65535)},
	} {
		if got, err := parseResource(c.text); err != nil || got != c.want {
			t.Errorf("parseResource(%q) = %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct{ text, say string }{
		{"", `there is no "="`},
		{"checkout", `there is no "="`},
		{"=100/1s", "the name is empty"},
		{"checkout=100", "there is no window"},
		{"checkout=/1s", "the limit"},
		{"checkout=-1/1s", "the limit"},
		{"checkout=4294967296/1s", "the limit"},
		{"checkout=1.5/1s", "the limit"},
		{"checkout=100/", "the window"},
		{"checkout=100/1", "the window"},
		{"checkout=100/second", "the window"},
		{"checkout=100/1s*", "tokens"},
		{"checkout=100/1s*65536", "tokens"},
		{"checkout=100/1s*-1", "tokens"},
		{"checkout=100/1s*1*2", "tokens"},
	} {
		if got, err := parseResource(c.text); err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), strconv.Quote(c.text)) {
			t.Errorf("parseResource(%q) = %+v, %v; want an error that says %q", c.text, got, err, c.say)
		}
	}
}

func TestParseGuard(t *testing.T) {
	for text, want := range map[string]weir.Guard{
		"inventory<100ms": testTrackers.tracker("inventory").Below(100 * time.Millisecond),
		"a<b=c<0s":        testTrackers.tracker("a<b=c").Below(0),
	} {
		if got, err := parseGuard(text, &testTrackers); err != nil || got != want {
			t.Errorf("parseGuard(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "inventory", "inventory=100ms", "<100ms", "inventory<", "inventory<100", "inventory<fast"} {
		if got, err := parseGuard(bad, &testTrackers); err == nil || !strings.Contains(err.Error(), "write NAME<DURATION") {
			t.Errorf("parseGuard(%q) = %+v, %v; want an error", bad, got, err)
		}
	}
}

func TestParseObservation(t *testing.T) {
	for text, want := range map[string]weir.Observation{
		"inventory=18ms":   testTrackers.tracker("inventory").Took(18 * time.Millisecond),
		"inventory=18.9ms": testTrackers.tracker("inventory").Took(18*time.Millisecond + 900*time.Microsecond),
		"a=b<c=0s":         testTrackers.tracker("a=b<c").Took(0),
	} {
		if got, err := parseObservation(text, &testTrackers); err != nil || got != want {
			t.Errorf("parseObservation(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "inventory", "inventory<18ms", "=18ms", "inventory=", "inventory=18", "inventory=-1ms"} {
		if got, err := parseObservation(bad, &testTrackers); err == nil || !strings.Contains(err.Error(), "write NAME=DURATION") {
			t.Errorf("parseObservation(%q) = %+v, %v; want an error", bad, got, err)
		}
	}
}

// TestAnyNameParses holds that a name may be any text that is not empty.
func TestAnyNameParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, -1, -1).Draw(t, "name")
		r, err := parseResource(name + "=7/3s*2")
		if err != nil || r != weir.Bucket(name, 7, 3*time.Second).Take(2) {
			t.Errorf("bucket %q: %+v, %v", name, r, err)
		}
		g, err := parseGuard(name+"<5ms", &testTrackers)
		if err != nil || g != testTrackers.tracker(name).Below(5*time.Millisecond) {
			t.Errorf("guard %q: %+v, %v", name, g, err)
		}
		o, err := parseObservation(name+"=5ms", &testTrackers)
		if err != nil || o != testTrackers.tracker(name).Took(5*time.Millisecond) {
			t.Errorf("observation %q: %+v, %v", name, o, err)
		}
	})
}

func specsTarget() *storm.Target {
	target := storm.New("FuzzSpecs", func(t testing.TB, text string) {
		if r, err := parseResource(text); err == nil && !strings.HasPrefix(text, r.Bucket.Name()+"=") {
			t.Errorf("parseResource(%q) = %+v", text, r)
		}
		if g, err := parseGuard(text, &testTrackers); err == nil && !strings.HasPrefix(text, g.Tracker.Name()+"<") {
			t.Errorf("parseGuard(%q) = %+v", text, g)
		}
		if o, err := parseObservation(text, &testTrackers); err == nil && !strings.HasPrefix(text, o.Tracker.Name()+"=") {
			t.Errorf("parseObservation(%q) = %+v", text, o)
		}
	})
	for _, s := range []string{"checkout=100/1s*5", "inventory<100ms", "inventory=18ms", "=", "<", "a=1/1s*", "a=1/9999999h"} {
		target.Add(s)
	}
	return target
}

func FuzzSpecs(f *testing.F)      { specsTarget().Fuzz(f) }
func TestStormSpecs(t *testing.T) { specsTarget().Storm(t) }
