package simrun

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func small() *sim.Scenario {
	return &sim.Scenario{
		Name: "small", Length: 2 * time.Second, Policy: policy.Default(),
		Buckets: []sim.Bucket{{Name: "shop", Limit: 50, Window: time.Second}},
		Servers: []sim.Server{{Name: "A", Age: time.Hour}, {Name: "B", Age: time.Minute}},
		Clients: []sim.Clients{{
			Name: "web", Arrivals: sim.Arrivals{Kind: sim.ArrivePoisson, Every: 10 * time.Millisecond},
			Mix: []sim.Choice{{Take: []sim.Take{{Bucket: "shop", Tokens: 1}}}},
		}},
		Links: []sim.Link{{From: "*", To: "*", Both: true, Delay: sim.Uniform(time.Millisecond, 9*time.Millisecond)}},
	}
}

// TestRunsDoNotKnowOfEachOther holds that results come in the jobs' order, and are the same one
// by one and in parallel.
func TestRunsDoNotKnowOfEachOther(t *testing.T) {
	s := small()
	var jobs []Job
	for seed := range uint64(9) {
		jobs = append(jobs, Job{Scenario: s, Seed: seed})
	}
	together, err := Run(t.Context(), jobs, Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		alone, err := Run(t.Context(), jobs[i:i+1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(alone[0], together[i]) {
			t.Errorf("seed %d comes to something else alone", jobs[i].Seed)
		}
		if i > 0 && reflect.DeepEqual(together[i], together[0]) {
			t.Errorf("seeds %d and %d come to the same", jobs[i].Seed, jobs[0].Seed)
		}
	}
}

// TestProgressEnds holds that progress never goes back and ends with all of it.
func TestProgressEnds(t *testing.T) {
	s := small()
	last, calls := time.Duration(0), 0
	_, err := Run(t.Context(), []Job{{Scenario: s, Seed: 1}, {Scenario: s, Seed: 2}, {Scenario: s, Seed: 3}}, Options{
		Workers: 3,
		Progress: func(played, all time.Duration) {
			if all != 3*s.Length || played < last {
				t.Errorf("%v of %v after %v", played, all, last)
			}
			last = played
			calls++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 3*s.Length || calls < 6 {
		t.Errorf("it ends at %v, after %d calls", last, calls)
	}
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	if _, err := Run(t.Context(), []Job{{Scenario: small(), Seed: 1, Log: &log}}, Options{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n < 500 {
		t.Errorf("the log has %d lines", n)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestEnds holds what ends a run early: the first error, and the context.
func TestEnds(t *testing.T) {
	_, err := Run(t.Context(), []Job{{Scenario: small(), Seed: 1}, {Scenario: small(), Seed: 7, Log: broken{}}}, Options{Workers: 2})
	if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "small with seed 7: ") {
		t.Errorf("a log that cannot be written: %v", err)
	}
	wrong := small()
	wrong.Clients = nil
	if _, err := Run(t.Context(), []Job{{Scenario: wrong, Seed: 1}}, Options{}); err == nil {
		t.Error("a scenario without clients is played")
	}
	ctx, cancel := context.WithCancel(t.Context())
	long := small()
	long.Length = 24 * time.Hour
	_, err = Run(ctx, []Job{{Scenario: long, Seed: 1, Log: io.Discard}}, Options{
		Progress: func(time.Duration, time.Duration) { cancel() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was canceled: %v", err)
	}
}
