package sim_test

import (
	"fmt"
	"os"
	"time"

	"github.com/weirhq/weir/sim"
)

// The oldest server is slow: the client waits for it as long as its policy says.
func Example() {
	s := &sim.Scenario{
		Name:    "slow-oldest",
		Length:  10 * time.Millisecond,
		Buckets: []sim.Bucket{{Name: "checkout", Limit: 100, Window: time.Second}},
		Servers: []sim.Server{
			{Name: "A", Age: 2 * time.Hour, Service: sim.Constant(25 * time.Millisecond)},
			{Name: "B", Age: time.Hour},
		},
		Clients: []sim.Clients{{
			Name:     "web",
			Arrivals: sim.Arrivals{Kind: sim.ArriveTrace, Times: []time.Duration{0}},
			Mix:      []sim.Choice{{Take: []sim.Take{{Bucket: "checkout", Tokens: 1}}}},
		}},
		Links: []sim.Link{{From: "*", To: "*", Delay: sim.Constant(time.Millisecond)}},
	}
	sum, err := sim.Run(s, 1, sim.NewLog(os.Stdout, s))
	fmt.Println(sum.Requests, "request,", err)
	// Output:
	//     0s  run slow-oldest with unit=20ms replays=1 gap=fixed:1 preference=list:1,0 final=1 final-preference=0 completion-delivery=on
	//     0s  A starts
	//     0s  B starts
	//     0s  membership of web A B
	//     0s  submit 1 by web
	//     0s  send 1 to A
	//     0s  send 1 to B
	//    1ms  arrive 1 at A worker 0 queue 1
	//    1ms  arrive 1 at B worker 0 queue 1
	//    1ms  serve 1 at B: granted
	//    2ms  response B 1: counted
	//   20ms  complete-deliver 1 to A
	//   20ms  decide 1 granted by B in round 0 after 20ms
	//   21ms  arrive 1 (complete-deliver) at A worker 0 queue 1
	//   26ms  serve 1 at A: granted
	//   27ms  response A 1: late
	//   51ms  serve 1 (complete-deliver) at A: repeat_granted
	//   52ms  response A 1 (complete-deliver): duplicate
	//   52ms  A ends
	//   52ms  B ends
	// 1 request, <nil>
}
