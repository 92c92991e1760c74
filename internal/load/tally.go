package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What an answer may be that none of ours should get.
const (
	wrongUnreadable = iota // not authentic, or no response
	wrongStranger          // to a question that was never asked here
	wrongServer            // under the ID of another server
	wrongShape             // other guards or resources than asked for
	wrongRate              // granted, and the bucket is over its limit
	wrongKinds
)

// tally is what a flow counts, of requests that were due between begin and end.
type tally struct {
	sent, reports    uint64
	replays          uint64
	granted, denied  uint64
	lost             uint64
	late             uint64 // answers that came after the timeout, or twice
	wrong            [wrongKinds]uint64
	latency          *histogram
	waited, together int64 // ns that answers lay in our sockets, and all that they took
}

func (t *tally) count(granted bool, latency int64) {
	if granted {
		t.granted++
	} else {
		t.denied++
	}
	t.latency.record(latency)
}

// add adds another's counts.
func (t *tally) add(o *tally) {
	t.sent += o.sent
	t.reports += o.reports
	t.replays += o.replays
	t.granted += o.granted
	t.denied += o.denied
	t.lost += o.lost
	t.late += o.late
	for i, n := range o.wrong {
		t.wrong[i] += n
	}
	t.waited += o.waited
	t.together += o.together
}

// histogram is one of nanoseconds, to three digits. Several flows share one if there are many, as it
// takes 200 kB.
type histogram struct {
	mu  sync.Mutex
	all *hdrhistogram.Histogram
}

func newHistogram() *histogram {
	return &histogram{all: hdrhistogram.New(1, int64(MaxTimeout), 3)}
}

func newHistograms(n int) []*histogram {
	hs := make([]*histogram, n)
	for i := range hs {
		hs[i] = newHistogram()
	}
	return hs
}

func (h *histogram) record(ns int64) {
	h.mu.Lock()
	_ = h.all.RecordValue(min(max(ns, 1), int64(MaxTimeout))) // in its range, so it takes it
	h.mu.Unlock()
}

// merge returns all of some histograms in one.
func merge(hs []*histogram) *hdrhistogram.Histogram {
	sum := newHistogram().all
	for _, h := range hs {
		sum.Merge(h.all)
	}
	return sum
}

// Quantiles are times in microseconds.
type Quantiles struct {
	N     int64   `json:"n"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99.9"`
	P9999 float64 `json:"p99.99"`
	Max   float64 `json:"max"`
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	at := func(p float64) float64 { return micros(h.ValueAtPercentile(p)) }
	return Quantiles{
		N: h.TotalCount(), Mean: h.Mean() / float64(time.Microsecond),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99), Max: micros(h.Max()),
	}
}

func micros(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }
