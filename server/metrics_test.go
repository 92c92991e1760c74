package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/weirhq/weir/limiter"
)

// collectorFunc is a collector that says nothing of itself beforehand.
type collectorFunc func(emitter)

func (f collectorFunc) Describe(chan<- *prometheus.Desc) {}

func (f collectorFunc) Collect(ch chan<- prometheus.Metric) { f(emitter{ch}) }

// collected returns what a function emits, as lines of name and value.
func collected(t *testing.T, emit func(emitter)) (lines []string) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(collectorFunc(emit))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			lines = append(lines, fmt.Sprint(strings.TrimPrefix(f.GetName(), "weir_"), " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}

// Each number of an engine is shown under its own name.
func TestEngineMetrics(t *testing.T) {
	st := limiter.Stats{
		Buckets: 1, Trackers: 2, Pacing: 3, Identities: 4, Answers: 5, Memory: 6,
		Degraded: 7, AnswersLost: 8, RefusedBlocks: 9, Shadowed: 10, Trips: 11, DroppedBlocks: 12, Floor: 13_500,
	}
	got := collected(t, func(e emitter) { collectEngine(e, "shop", st) })
	want := []string{
		"live_buckets 1", "live_trackers 2", "pacing_guards 3", "dedup_identities 4", "dedup_answers 5", "tenant_memory_bytes 6",
		"dedup_degraded_total 7", "dedup_answers_lost_total 8", "refused_resource_blocks_total 9", "shadowed_rejections_total 10",
		"guard_trips_total 11", "dropped_report_blocks_total 12", "dedup_floor_seconds 13.5",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("shown\n%q, want\n%q", got, want)
	}
}
