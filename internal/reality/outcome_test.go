package reality

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/sim"
)

// outcome is what one run came to, simulated or real.
type outcome struct {
	Submitted int                    `json:"submitted"`
	Granted   int                    `json:"granted"`
	Rejected  int                    `json:"rejected"`
	TimedOut  int                    `json:"timed_out"`
	Other     int                    `json:"other"`    // refused, or not sent
	Replayed  int                    `json:"replayed"` // decided after a replay or more
	By        map[string]int         `json:"decided_by"`
	Sent      [core.SendKinds]uint64 `json:"sent"`      // datagrams, by core.SendKind
	Disturbed int                    `json:"disturbed"` // requests and datagrams that waited for a processor for longer than relay.TooLate
	P50       time.Duration          `json:"p50_ns"`
	P95       time.Duration          `json:"p95_ns"`

	took []time.Duration // of decided requests, sorted
}

func (o *outcome) decided() int { return o.Granted + o.Rejected }

// add counts the end of a request.
func (o *outcome) add(e end, server string) {
	o.Submitted++
	switch e.Outcome {
	case core.Granted:
		o.Granted++
	case core.Rejected:
		o.Rejected++
	case core.TimedOut:
		o.TimedOut++
		return
	default:
		o.Other++
		return
	}
	if e.Replays > 0 {
		o.Replayed++
	}
	if o.By == nil {
		o.By = map[string]int{}
	}
	o.By[server]++
	o.took = append(o.took, e.Took)
}

// finish is called when all ends are in.
func (o *outcome) finish() {
	slices.Sort(o.took)
	o.P50, o.P95 = quantile(o.took, 0.5), quantile(o.took, 0.95)
}

// quantile returns the value of rank ceil(q * n), 0 if there is none.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(1, int(math.Ceil(q*float64(len(sorted)))))-1]
}

// names are those of servers, by their IDs: one that was started again is another.
type names map[ident.ServerID]string

func (n names) start(id ident.ServerID, server string) {
	starts := 1
	for _, name := range n {
		if name == server || len(name) > len(server) && name[:len(server)+1] == server+"." {
			starts++
		}
	}
	if starts > 1 {
		server = fmt.Sprintf("%s.%d", server, starts)
	}
	n[id] = server
}

// simulate plays a scenario in virtual time.
func simulate(s *sim.Scenario, seed uint64) (*outcome, error) {
	o, servers := &outcome{}, names{}
	var unnamed error
	_, err := sim.Run(s, seed, recorder(func(r *sim.Record) {
		switch r.Kind {
		case sim.RecordServer:
			if r.Up {
				servers.start(r.ID, s.Servers[r.Server].Name)
			}
		case sim.RecordSubmit:
			if r.Err != nil {
				o.add(end{Outcome: core.SendFailed}, "")
			}
		case sim.RecordSend:
			o.Sent[r.Send]++
		case sim.RecordDecide:
			c := r.Completion
			if c.Server != 0 && servers[c.Server] == "" {
				unnamed = fmt.Errorf("%s: server %v decided and never started", s.Name, c.Server)
			}
			o.add(end{c.Outcome, c.Server, c.Replays, c.Elapsed}, servers[c.Server])
		}
	}))
	if err == nil {
		err = unnamed
	}
	o.finish()
	return o, err
}
