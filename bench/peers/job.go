package main

import (
	"fmt"
	"math"
)

// A Job says whom to ask, how hard, and for what. Bench writes it, with a type of its own that
// testdata/job.json holds to this one.
type Job struct {
	System      string  `json:"system"` // "redis", "gubernator" or "envoy"
	Addr        string  `json:"addr"`
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight,omitempty"` // closed loop: requests in flight over all connections
	Rate        float64 `json:"rate,omitempty"`      // open loop: requests a second, at random intervals
	WarmUp      float64 `json:"warm_up,omitempty"`   // seconds that do not count, before those that do
	Seconds     float64 `json:"seconds,omitempty"`   // that count
	Keys        int     `json:"keys"`                // each request takes one of so many, all alike

	// Each asks for every key once, and then ends; it is for a closed loop, and all of it counts.
	Each  bool `json:"each,omitempty"`
	Batch int  `json:"batch,omitempty"` // keys in a request; 0 is 1. Redis has one in each, always

	// What a request takes one of. The configuration of envoy's server says it there.
	Limit  int64 `json:"limit,omitempty"`
	Window int64 `json:"window_ms,omitempty"`
}

// A Result is what came of a load. Times are in microseconds; they are of requests that were due in the
// time that counts.
type Result struct {
	PerSecond float64 `json:"per_second"` // answers in the time that counts
	Granted   int     `json:"granted"`
	Denied    int     `json:"denied"`
	Wrong     int     `json:"wrong"` // answers that are errors
	Lost      int     `json:"lost"`  // requests that had none in time
	All       int     `json:"all"`   // answers, also before and after the time that counts
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	Max       float64 `json:"max_us"`
	LagP99    float64 `json:"lag_p99_us,omitempty"` // open loop: how late requests were sent
	Error     string  `json:"error,omitempty"`      // the first of what was wrong
}

// check says what is wrong with a job.
func (j *Job) check() error {
	const most = 1 << 20
	open := j.Rate != 0
	switch {
	case systems[j.System] == nil:
		return fmt.Errorf("there is no system %q", j.System)
	case j.Connections < 1 || j.Connections > most:
		return fmt.Errorf("%d connections are not from 1 to %d", j.Connections, most)
	case open && (j.InFlight != 0 || j.Each):
		return fmt.Errorf("an open loop has a rate, and no in_flight or each")
	case open && !(j.Rate > 0 && j.Rate <= most):
		return fmt.Errorf("%v requests a second are not above 0 and at most %d", j.Rate, most)
	case !open && (j.InFlight < j.Connections || j.InFlight > most):
		return fmt.Errorf("%d requests in flight are not from %d, one for each connection, to %d", j.InFlight, j.Connections, most)
	case j.WarmUp < 0 || math.IsNaN(j.WarmUp) || math.IsInf(j.WarmUp, 0) || j.Each && j.WarmUp != 0:
		return fmt.Errorf("a warm-up of %v s cannot be", j.WarmUp)
	case !j.Each && !(j.Seconds > 0 && j.Seconds < most):
		return fmt.Errorf("%v seconds are not above 0 and below %d", j.Seconds, most)
	case j.Keys < 1:
		return fmt.Errorf("%d keys are too few", j.Keys)
	case j.Batch < 0 || j.Batch > 1 && j.System == "redis":
		return fmt.Errorf("a batch of %d cannot be", j.Batch)
	case j.Limit < 0 || j.Window < 0 || j.System != "envoy" && (j.Limit == 0 || j.Window == 0):
		return fmt.Errorf("a limit of %d in %d ms cannot be", j.Limit, j.Window)
	case j.System == "redis" && j.Limit > j.Window*1000:
		return fmt.Errorf("the script counts microseconds, so it grants no more than %d in %d ms", j.Window*1000, j.Window)
	}
	return nil
}
