package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// systemsName is what stands for the figures of all systems, beside the names of bars.
const systemsName = "systems"

// few is how many sockets clients have when each of them has many requests in flight.
const few = 4

// memoryKeys is with how many keys memory is measured.
const memoryKeys = 1_000_000

// latencies are of one load, in microseconds.
type latencies struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
}

func latenciesOf(s *sample) latencies { return latencies{s.P50, s.P99, s.P999} }

// systemRow is what was found of a system. It is for looking at, and held against no bar.
type systemRow struct {
	System   string    `json:"system"`
	Sockets  string    `json:"sockets"` // "one each", or how many share what is in flight
	At64     float64   `json:"per_second_64"`
	At256    float64   `json:"per_second_256"`
	CPU64    float64   `json:"cpu_us_64"` // a decision, of all on the server's side
	CPU256   float64   `json:"cpu_us_256"`
	One      latencies `json:"one_in_flight"`
	HalfRate float64   `json:"half_rate"` // half of what it can do with 64 or 256 in flight
	Half     latencies `json:"half"`
	HalfLost float64   `json:"half_lost,omitempty"` // share of the requests at that rate; they are among the latencies
	Memory   float64   `json:"memory_mb,omitempty"` // resident, with 10^6 keys; once for each system
}

// system is one of those whose figures are found, with one kind of clients.
type system struct {
	name  string
	few   bool
	start func(ctx context.Context) (*subject, error)
	load  func(ctx context.Context, s *subject, sockets, inFlight int, rate float64) (sample, error)
	// memory is resident with 10^6 keys, in bytes. Nil: it keeps none, or another row has it.
	memory func(ctx context.Context) (float64, error)
}

// sockets returns over how many sockets so many requests are in flight.
func (s *system) sockets(inFlight int) int {
	if s.few {
		return min(few, inFlight)
	}
	return inFlight
}

// systems are all of which there are figures.
func (c *comparing) systems() (all []system) {
	ours := func(bursts bool) func(ctx context.Context, s *subject, sockets, inFlight int, rate float64) (sample, error) {
		return func(ctx context.Context, s *subject, sockets, inFlight int, rate float64) (sample, error) {
			slice := c.plan.longSlice()
			cfg := generator.Config{
				Keys: []apikey.Key{c.tenant.key}, Flows: sockets, InFlight: inFlight, Rate: rate, NoBursts: !bursts, For: slice, WarmUp: slice / 5,
			}
			return measure(ctx, s, cfg)
		}
	}
	theirs := func(ctx context.Context, s *subject, sockets, inFlight int, rate float64) (sample, error) {
		return c.peers.measure(ctx, s, sockets, inFlight, rate, c.plan.longSlice())
	}
	running := func(context.Context) (*subject, error) {
		s := *c.ours
		s.end = func() {} // others need it
		return &s, nil
	}
	floor := func(ctx context.Context) (*subject, error) { return startFloor(ctx, c.tenant, 0, 1) }
	all = []system{
		{"floor", false, floor, ours(false), nil},
		{"r-server", false, running, ours(false), c.ourMemory},
		{"r-server", true, running, ours(true), nil},
	}
	for _, name := range peerNames {
		start := func(ctx context.Context) (*subject, error) { return c.peers.start(ctx, name, 0) }
		all = append(all,
			system{name, false, start, theirs, func(ctx context.Context) (float64, error) { return c.peers.memory(ctx, name) }},
			system{name, true, start, theirs, nil})
	}
	return all
}

// measureSystems finds the figures of all systems that can be had.
func (c *comparing) measureSystems(ctx context.Context, report *compareReport) error {
	if err := c.peers.check(systemsName); err != nil {
		report.skip(err, systemsName)
		return nil
	}
	for _, s := range c.systems() {
		row, err := s.figures(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%s: %w", systemsName, context.Cause(ctx))
		case errors.Is(err, errSkipped):
			if s.memory != nil { // it has two rows
				report.skip(err, systemsName+"/"+s.name)
			}
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", systemsName, err)
		}
		report.addSystem(row)
	}
	return nil
}

// figures finds what there is to say of a system.
func (s *system) figures(ctx context.Context) (*systemRow, error) {
	row := &systemRow{System: s.name, Sockets: "one each"}
	if s.few {
		row.Sockets = fmt.Sprint(few)
	}
	if err := s.speed(ctx, row); err != nil {
		return nil, err
	}
	if s.memory == nil {
		return row, nil
	}
	memory, err := s.memory(ctx)
	row.Memory = memory / (1 << 20)
	return row, err
}

func (s *system) speed(ctx context.Context, row *systemRow) error {
	subject, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer subject.end()
	for _, load := range []struct {
		inFlight int // 0: the open loop
		put      func(got *sample)
	}{
		{64, func(got *sample) { row.At64, row.CPU64 = got.PerSecond, got.CPU }},
		{256, func(got *sample) { row.At256, row.CPU256 = got.PerSecond, got.CPU }},
		{1, func(got *sample) { row.One = latenciesOf(got) }},
		{0, func(got *sample) { row.Half, row.HalfLost = latenciesOf(got), got.Lost }},
	} {
		sockets, rate := s.sockets(load.inFlight), 0.0
		if load.inFlight == 0 {
			row.HalfRate = max(row.At64, row.At256) / 2
			sockets, rate = s.sockets(crowd), row.HalfRate
		}
		got, err := s.load(ctx, subject, sockets, load.inFlight, rate)
		if err != nil {
			return err
		}
		load.put(&got)
	}
	return nil
}

const systemsHead = `
                          decisions a second    us of processor  one in flight, us          at half of its maximum, us          MB with
                 sockets   64 flying 256 flying     64    256    p50    p99  p99.9     rate    p50    p99  p99.9  10^6 keys`

func (r *systemRow) line() string {
	memory := "-"
	if r.Memory > 0 {
		memory = fmt.Sprintf("%.0f", r.Memory)
	}
	lost := ""
	if r.HalfLost > 0 {
		lost = fmt.Sprintf("  at half %.2g %% were lost", 100*r.HalfLost)
	}
	return fmt.Sprintf("%-15s %8s %10.0f %10.0f %6.1f %6.1f %6.0f %6.0f %6.0f %8.0f %6.0f %6.0f %6.0f %10s%s", r.System, r.Sockets, r.At64, r.At256,
		r.CPU64, r.CPU256, r.One.P50, r.One.P99, r.One.P999, r.HalfRate, r.Half.P50, r.Half.P99, r.Half.P999, memory, lost)
}

// addSystem adds a row to the second table.
func (r *compareReport) addSystem(row *systemRow) {
	if len(r.Systems) == 0 {
		fmt.Fprintln(r.lines, systemsHead)
	}
	fmt.Fprintln(r.lines, row.line())
	r.Systems = append(r.Systems, row)
}
