package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// link is one connection to a system, over which many requests may be in flight.
type link interface {
	// probe asks once, and says why there was no answer.
	probe(ctx context.Context) error
	// closed keeps so many requests in flight until the run is over, and returns when all are answered.
	closed(r *run, inFlight int) error
	// fire sends a request for each of these instants, at which they were due. Answers are recorded when
	// they come, by others. One goroutine at a time calls it.
	fire(r *run, due []int64) error
	// drain returns when what was fired is answered, or fails.
	drain(ctx context.Context) error
	close()
}

const (
	readyGrace = 10 * time.Second // for a server to begin to answer
	drainGrace = 5 * time.Second  // for answers after the end
)

// verdict is what an answer says.
type verdict int

const (
	granted verdict = iota
	denied
	wrong
	verdicts
)

// run is a load under way. Instants are nanoseconds after the start.
type run struct {
	job        *Job
	start      time.Time
	begin, end int64
	swept      atomic.Int64 // keys that were asked for, if it is each once

	mu        sync.Mutex
	latencies *hdrhistogram.Histogram // ns
	counts    [verdicts]int
	answered  int // by when the answers came, in the time that counts
	all       int
	fired     int // in the time that counts
	first     error
	last      int64 // answer
}

const (
	leastLatency = int64(time.Microsecond / 10)
	mostLatency  = int64(time.Minute)
	digits       = 3
)

func newRun(job *Job) *run {
	r := &run{job: job, latencies: hdrhistogram.New(leastLatency, mostLatency, digits), start: time.Now()}
	r.begin = int64(job.WarmUp * float64(time.Second))
	r.end = r.begin + int64(job.Seconds*float64(time.Second))
	if job.Each {
		r.end = int64(time.Hour)
	}
	return r
}

func (r *run) now() int64 { return int64(time.Since(r.start)) }

// next returns the keys of the next request, from the first to before the last; the last is not above the
// first when all that is to be asked was.
func (r *run) next(now int64) (from, to int) {
	n := max(1, r.job.Batch)
	switch {
	case now >= r.end:
		return 0, 0
	case r.job.Each:
		to = int(r.swept.Add(int64(n)))
		return to - n, min(to, r.job.Keys)
	}
	from = rand.IntN(r.job.Keys)
	return from, from + n
}

// answer is one that has come.
type answer struct {
	due     int64
	verdict verdict
}

// record counts answers, which came now. err is what one of them says is wrong.
func (r *run) record(answers []answer, err error) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = cmp.Or(r.first, err)
	r.all += len(answers)
	r.last = now
	if now >= r.begin && now < r.end {
		r.answered += len(answers)
	}
	for _, a := range answers {
		if a.due < r.begin || a.due >= r.end {
			continue
		}
		r.counts[a.verdict]++
		_ = r.latencies.RecordValue(min(max(now-a.due, leastLatency), mostLatency))
	}
}

// do runs a job.
func do(ctx context.Context, job *Job) (*Result, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	var links []link
	defer func() {
		for _, l := range links {
			l.close()
		}
	}()
	for range job.Connections {
		l, err := awaitLink(ctx, job)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	r := newRun(job)
	if job.Rate > 0 {
		lag, err := r.open(ctx, links)
		if err != nil {
			return nil, err
		}
		out := r.result()
		out.LagP99 = micros(lag.ValueAtPercentile(99))
		return out, nil
	}
	ended := make(chan error, len(links))
	for i, l := range links {
		n := job.InFlight / len(links)
		if i < job.InFlight%len(links) {
			n++
		}
		go func() { ended <- l.closed(r, n) }()
	}
	for range links {
		if err := <-ended; err != nil {
			return nil, err
		}
	}
	return r.result(), nil
}

// awaitLink opens a link to a server that may be about to start, and returns when it answers.
func awaitLink(ctx context.Context, job *Job) (link, error) {
	const pause = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, readyGrace)
	defer cancel()
	for {
		l, err := systems[job.System](ctx, job)
		if err == nil {
			if err = l.probe(ctx); err == nil {
				return l, nil
			}
			l.close()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s at %s does not answer: %w", job.System, job.Addr, err)
		case <-time.After(pause):
		}
	}
}

// open sends at the rate until the run is over, over each link in turn, whether answers come or not. It
// returns how late it was.
func (r *run) open(ctx context.Context, links []link) (*hdrhistogram.Histogram, error) {
	const most = 64 // that leave together
	lag := hdrhistogram.New(leastLatency, mostLatency, digits)
	mean := float64(time.Second) / r.job.Rate
	at, turn := rand.ExpFloat64()*mean, 0
	var due []int64
	for at < float64(r.end) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		sleepUntil(r.start.Add(time.Duration(at)))
		now := r.now()
		due = due[:0]
		for ; at < float64(r.end) && int64(at) <= now && len(due) < most; at += rand.ExpFloat64() * mean {
			due = append(due, int64(at))
			if int64(at) >= r.begin {
				r.fired++
				_ = lag.RecordValue(min(max(now-int64(at), leastLatency), mostLatency))
			}
		}
		// Those that leave together are few: each link gets its part, so that no queue is longer than others.
		for part := range chunks(due, len(links)) {
			if err := links[turn].fire(r, part); err != nil {
				return nil, err
			}
			turn = (turn + 1) % len(links)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	for _, l := range links {
		if err := l.drain(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	return lag, nil
}

// chunks yields parts of a list: at most n, as alike as can be.
func chunks(list []int64, n int) func(func([]int64) bool) {
	return func(yield func([]int64) bool) {
		for ; len(list) > 0 && n > 0; n-- {
			size := (len(list) + n - 1) / n
			if !yield(list[:size]) {
				return
			}
			list = list[size:]
		}
	}
}

func (r *run) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Result{
		Granted: r.counts[granted], Denied: r.counts[denied], Wrong: r.counts[wrong], All: r.all,
	}
	if r.job.Rate > 0 { // what was lost has its place among the latencies
		out.Lost = r.fired - out.Granted - out.Denied - out.Wrong
		_ = r.latencies.RecordValues(int64(drainGrace), int64(out.Lost))
	}
	end := r.end
	if r.job.Each {
		end = max(1, r.last)
	}
	out.PerSecond = float64(r.answered) / time.Duration(end-r.begin).Seconds()
	out.P50, out.P99 = micros(r.latencies.ValueAtPercentile(50)), micros(r.latencies.ValueAtPercentile(99))
	out.P999, out.Max = micros(r.latencies.ValueAtPercentile(99.9)), micros(r.latencies.Max())
	if r.first != nil {
		out.Error = r.first.Error()
	}
	return out
}

func micros(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }
