package conformance

import (
	"math"
	"slices"
)

// FindMargin returns what [Trace].Margin is: the least distance between the
// instants at which the policy does something for a request, and those at which it
// is answered; with a delay of completion delivery also those at which that is over
// after the sends that the trace has. Two answers at one instant, or one at a deadline, make it 0, and so
// does a change of members by hand, which no real client can be told.
func (t *Trace) FindMargin() int64 {
	p, err := t.Policy.Policy()
	if err != nil {
		return 0
	}
	line, err := p.Compile()
	if err != nil {
		return 0
	}
	var instants []int64 // offsets from a submit
	for k := range line.Rounds() + 2 {
		instants = append(instants, int64(line.Start(k)))
		if k <= line.Rounds() {
			instants = append(instants, int64(line.PreferenceEnd(k)))
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)

	began := map[string]int64{}
	answers, deliveries := map[string][]int64{}, map[string][]int64{}
	for i := range t.Events {
		e := &t.Events[i]
		switch {
		case e.Members != nil:
			return 0
		case e.Submit != nil:
			began[e.Submit.ID] = e.At
		case e.Answer != nil:
			answers[e.Answer.Of] = append(answers[e.Answer.Of], e.At-began[e.Answer.Of])
		case e.Send != nil && line.DeliveryDelay() > 0:
			if due := e.At - began[e.Send.Request] + int64(line.DeliveryDelay()); (e.Send.Why == "first" || e.Send.Why == "replay") && !slices.Contains(instants, due) {
				deliveries[e.Send.Request] = []int64{due}
			}
		}
	}
	least := int64(math.MaxInt64)
	closest := func(at []int64) {
		for i := 1; i < len(at); i++ {
			least = min(least, at[i]-at[i-1])
		}
	}
	closest(instants)
	for id := range began {
		at := slices.Concat(instants, answers[id], deliveries[id])
		slices.Sort(at)
		closest(at)
	}
	return least
}
