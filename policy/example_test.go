package policy_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/policy"
)

func ExamplePolicy_Compile() {
	p := policy.Default()
	p.Replays = 2
	p.Gap = policy.Linear(1, 1, 4)
	timeline, err := p.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	for k := range timeline.Rounds() {
		fmt.Printf("round %d from %v, oldest preferred until %v\n", k, timeline.Start(k), timeline.PreferenceEnd(k))
	}
	fmt.Println("horizon", timeline.Horizon())

	p.Preference = policy.Fixed(2)
	_, err = p.Compile()
	fmt.Println(err)
	// Output:
	// round 0 from 0s, oldest preferred until 20ms
	// round 1 from 20ms, oldest preferred until 20ms
	// round 2 from 60ms, oldest preferred until 60ms
	// horizon 140ms
	// policy: preference: round 0 waits 2 units for the oldest server, but lasts 1
}

func ExampleParse() {
	p, err := policy.Parse("strict-oldest unit=5ms replays=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p)
	// Output: unit=5ms replays=2 gap=fixed:1 preference=fixed:1 final=1 final-preference=1 completion-delivery=on
}

func ExampleTimeline_RoundAt() {
	timeline, err := policy.Default().Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	// Rounds are half-open: the start of round 1 belongs to round 1.
	fmt.Println(timeline.RoundAt(20*time.Millisecond-1), timeline.RoundAt(20*time.Millisecond))
	// Output: 0 1
}

func ExampleParseSchedule() {
	s, err := policy.ParseSchedule("exponential:1:2:8")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.At(0), s.At(1), s.At(2), s.At(3), s.At(4))
	// Output: 1 2 4 8 8
}
