package core

import (
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// modelPlan is a policy as instants after a submit.
type modelPlan struct {
	policy policy.Policy
	starts []time.Duration // of rounds 0 to N and the final interval, then the horizon
	ends   []time.Duration // of the preferences of rounds 0 to N and the final interval
}

func (p *modelPlan) horizon() time.Duration { return p.starts[len(p.starts)-1] }

// interval is the round, or N+1, that an offset before the horizon lies in.
func (p *modelPlan) interval(offset time.Duration) int {
	k := 0
	for k <= p.policy.Replays && p.starts[k+1] <= offset {
		k++
	}
	return k
}

// newModelPlan adds up the units of a policy's rounds.
func newModelPlan(p policy.Policy, gap, preference []uint32) modelPlan {
	plan := modelPlan{policy: p}
	at := time.Duration(0)
	for k := range gap {
		plan.starts = append(plan.starts, at)
		plan.ends = append(plan.ends, at+time.Duration(preference[k])*p.Unit)
		at += time.Duration(gap[k]) * p.Unit
	}
	plan.starts = append(plan.starts, at, at+time.Duration(p.FinalReceive)*p.Unit)
	plan.ends = append(plan.ends, at+time.Duration(p.FinalPreference)*p.Unit)
	return plan
}

// drawPlan draws a policy that keeps every rule: of few units, so that instants
// of different rounds and requests meet.
func drawPlan(t *rapid.T) modelPlan {
	p := policy.Policy{
		Unit:               rapid.SampledFrom([]time.Duration{time.Millisecond, 999_983, 3*time.Millisecond + 1}).Draw(t, "unit"),
		Replays:            rapid.IntRange(0, 3).Draw(t, "replays"),
		FinalReceive:       rapid.Uint32Range(0, 3).Draw(t, "final"),
		CompletionDelivery: rapid.Bool().Draw(t, "completion delivery"),
	}
	if rapid.IntRange(0, 9).Draw(t, "many replays") == 9 {
		p.Replays = rapid.IntRange(4, 12).Draw(t, "replays")
	}
	p.FinalPreference = rapid.Uint32Range(0, p.FinalReceive).Draw(t, "final preference")
	var gap []uint32
	p.Gap, gap = drawSchedule(t, "gap", 1, p.Replays+1)
	preference := make([]uint32, len(gap)) // no preference
	p.Preference = policy.Fixed(0)
	switch rapid.IntRange(0, 3).Draw(t, "preference") {
	case 1:
		p.Preference, preference = p.Gap, gap
	case 2:
		for k, most := range gap {
			preference[k] = rapid.Uint32Range(0, most).Draw(t, "preference of a round")
		}
		p.Preference = policy.List(preference...)
	case 3:
		s, values := drawSchedule(t, "preference", 0, p.Replays+1)
		if within(values, gap) {
			p.Preference, preference = s, values
		}
	}
	return newModelPlan(delayed(t, p, gap), gap, preference)
}

// delayed draws when a policy's completion delivery is: with the decision, or later.
func delayed(t *rapid.T, p policy.Policy, gap []uint32) policy.Policy {
	units := p.FinalReceive
	for _, v := range gap {
		units += v
	}
	if p.CompletionDelivery && units > 1 && rapid.IntRange(0, 2).Draw(t, "delayed") > 0 {
		p.DeliveryDelay = rapid.Uint32Range(1, units-1).Draw(t, "delay")
	}
	return p
}

// within tells whether no value is above the other list's in its place.
func within(values, most []uint32) bool {
	for k := range values {
		if values[k] > most[k] {
			return false
		}
	}
	return true
}

// drawSchedule draws a schedule of each kind and its first n values.
func drawSchedule(t *rapid.T, label string, least uint32, n int) (policy.Schedule, []uint32) {
	v := rapid.Uint32Range(least, least+2)
	initial := v.Draw(t, label)
	most := initial + rapid.Uint32Range(0, 3).Draw(t, label+" room")
	values := []uint32{initial}
	grow := func(next func(uint32) uint32) []uint32 {
		for len(values) < n {
			values = append(values, min(next(values[len(values)-1]), most))
		}
		return values
	}
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return policy.Fixed(initial), grow(func(uint32) uint32 { return initial })
	case 1:
		step := rapid.Uint32Range(1, 2).Draw(t, label+" step")
		return policy.Linear(initial, step, most), grow(func(v uint32) uint32 { return v + step })
	case 2:
		factor := rapid.Uint32Range(2, 3).Draw(t, label+" factor")
		return policy.Exponential(initial, factor, most), grow(func(v uint32) uint32 { return v * factor })
	}
	values = rapid.SliceOfN(v, 1, 4).Draw(t, label+" list")
	list := policy.List(values...)
	for len(values) < n {
		values = append(values, values[len(values)-1])
	}
	return list, values[:n]
}

// modelServers is how many servers there are to choose from.
const modelServers = 16

// drawMembers draws servers, in no order, each with one to three endpoints.
func drawMembers(t *rapid.T) (servers []Server) {
	choice := 4
	if rapid.IntRange(0, 29).Draw(t, "many servers") == 29 {
		choice = modelServers
	}
	for i := range choice {
		if rapid.Bool().Draw(t, "without") {
			continue
		}
		s := Server{ID: serverID(i)}
		for j := range 1 + max(0, rapid.IntRange(-2, 2).Draw(t, "more endpoints")) {
			addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(9 + 7*i%16)})
			s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(addr, uint16(29292-j)))
		}
		servers = append(servers, s)
	}
	if rapid.Bool().Draw(t, "reversed") {
		slices.Reverse(servers)
	}
	return servers
}

// drawAsk draws what is asked, now and then nothing.
func drawAsk(t *rapid.T, layout wire.Layout) (ask Request) {
	names := rapid.SampledFrom([]string{"a", "a", "b"})
	for range max(0, rapid.IntRange(-4, 3).Draw(t, "guards")) {
		g := guard(names.Draw(t, "tracker"), rapid.SampledFrom([]uint32{50, 20, 0}).Draw(t, "threshold"))
		if layout == wire.Layout1 {
			g.BufferSize = 8
		}
		ask.Guards = append(ask.Guards, g)
	}
	tokens := rapid.Uint16Range(0, 2)
	for range max(0, rapid.IntRange(-1, 3).Draw(t, "resources")) {
		b := bucket(names.Draw(t, "bucket"))
		b.Tokens = tokens.Draw(t, "tokens")
		ask.Resources = append(ask.Resources, b)
	}
	if len(ask.Guards)+len(ask.Resources) == 0 && rapid.IntRange(0, 3).Draw(t, "nothing") < 3 {
		ask.Resources = []wire.Resource{bucket("a")}
	}
	if rapid.IntRange(0, 4).Draw(t, "label") == 4 {
		ask.Label = "checkout"
	}
	return ask
}
