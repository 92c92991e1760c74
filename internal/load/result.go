package load

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/ident"
)

// A Result is what came of a load. Requests count that were due in Seconds; times are in microseconds.
type Result struct {
	Loop        string  `json:"loop"` // "closed" or "open"
	Flows       int     `json:"flows"`
	InFlight    int     `json:"in_flight,omitempty"` // closed loop
	Rate        float64 `json:"rate,omitempty"`      // open loop, asked for, a second
	Seconds     float64 `json:"seconds"`
	Interrupted bool    `json:"interrupted,omitempty"`

	Sent      uint64  `json:"sent"`
	Granted   uint64  `json:"granted"`
	Denied    uint64  `json:"denied"`
	Lost      uint64  `json:"lost"`       // without an answer before the timeout; with Granted and Denied it makes up Sent
	Skipped   uint64  `json:"skipped"`    // open loop: never sent, as the client had fallen behind by more than the timeout; among the latencies they are lost ones
	PerSecond float64 `json:"per_second"` // answers that came in time, by when they came
	Reports   uint64  `json:"reports"`
	Replays   uint64  `json:"replays,omitempty"`
	Late      uint64  `json:"late"`   // answers that came after the timeout, or once more
	Moves     uint64  `json:"moves"`  // changes of a port, as a server asked
	Unsent    uint64  `json:"unsent"` // datagrams that this system did not take
	Unread    uint64  `json:"unread"` // errors of reading, as when nobody is there

	Error string `json:"error,omitempty"` // the first of those behind Unsent and Unread

	Wrong  uint64            `json:"wrong"` // answers, and tokens beyond a limit
	Wrongs map[string]uint64 `json:"wrongs,omitempty"`

	// Silent are the servers, each with a key, from which nothing came at all while others answered.
	Silent []string `json:"silent,omitempty"`

	Latency Quantiles  `json:"latency_us"`
	Lag     *Quantiles `json:"lag_us,omitempty"` // open loop: how late requests left

	ClientCPU   float64 `json:"client_cpu"`        // processors that this process used
	Processors  int     `json:"processors"`        // that it may use
	Machine     float64 `json:"machine,omitempty"` // share of the time that the machine's processors were busy; 0 where that is not known, or the servers are elsewhere
	ClientShare float64 `json:"client_share"`      // of all latency: answers that lay in this machine's sockets
	Limit       string  `json:"limit"`             // "client", "server", "machine", "in-flight", "none" or "unknown"
	Verdict     string  `json:"verdict"`

	Latencies *hdrhistogram.Histogram `json:"-"` // in ns, what Latency sums up
}

var wrongNames = [wrongKinds]string{"unreadable", "stranger", "server", "shape", "rate"}

// result sums up. All that was running has ended.
func (r *run) result(interrupted bool, cpu usage) *Result {
	var sum tally
	for _, f := range r.flows {
		sum.add(&f.tally)
	}
	latencies := merge(r.latency)
	seconds := time.Duration(max(0, r.end.Load()-r.begin)).Seconds()
	out := &Result{
		Loop: "closed", Flows: r.cfg.Flows, InFlight: r.cfg.InFlight, Seconds: seconds, Interrupted: interrupted,
		Sent: sum.sent, Granted: sum.granted, Denied: sum.denied, Lost: sum.lost, Reports: sum.reports, Replays: sum.replays, Late: sum.late,
		Moves: r.moves.Load(), Unsent: r.unsent.Load(), Unread: r.unread.Load(),
		Latency: quantiles(latencies), Latencies: latencies, Processors: runtime.GOMAXPROCS(0), Wrongs: map[string]uint64{},
	}
	if err := r.refusal.Load(); err != nil {
		out.Error = (*err).Error()
	}
	if r.cfg.Rate > 0 {
		r.resultOpen(out)
	}
	if seconds > 0 {
		out.PerSecond = float64(r.answered.Load()) / seconds
	}
	if cpu.of > 0 {
		out.ClientCPU = cpu.cpu.Seconds() / cpu.of.Seconds()
	}
	if cpu.all > 0 && r.here() {
		out.Machine = 1 - cpu.idle/cpu.all
	}
	if sum.together > 0 {
		out.ClientShare = float64(sum.waited) / float64(sum.together)
	}
	for i, n := range sum.wrong {
		out.wrong(wrongNames[i], n)
	}
	out.wrong("beyond-limit", r.beyond())
	out.Silent = r.silent()
	out.judge()
	return out
}

func (r *run) resultOpen(out *Result) {
	lags := newHistogram().all
	for _, s := range r.senders {
		lags.Merge(s.lag.all)
		out.Skipped += s.skipped
	}
	lag := quantiles(lags)
	out.Loop, out.InFlight, out.Rate, out.Lag = "open", 0, r.cfg.Rate, &lag
}

// silent names whom nothing came from that was asked, if somebody else answered. Where all are silent the verdict says so.
func (r *run) silent() (names []string) {
	asked, heard := map[string]bool{}, map[string]bool{}
	for i, f := range r.flows {
		name := fmt.Sprintf("%v with key %d", f.to, r.cfg.Keys[i%len(r.cfg.Keys)].ID())
		asked[name] = asked[name] || slices.ContainsFunc(f.slots.all, func(s slot) bool { return s.serial > 0 })
		heard[name] = heard[name] || f.heard
	}
	some := false
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		some = some || heard[name]
		if asked[name] && !heard[name] {
			names = append(names, name)
		}
	}
	if !some {
		return nil
	}
	return names
}

func (r *Result) wrong(name string, n uint64) {
	if n > 0 {
		r.Wrong += n
		r.Wrongs[name] = n
	}
}

// beyond returns the tokens that servers cannot have granted, however the windows lie.
func (r *run) beyond() (tokens uint64) {
	w := &r.cfg.Work
	windows := uint64(r.now().mono)/(uint64(w.Window)*uint64(time.Millisecond)) + 1
	most := windows * uint64(w.Limit) * uint64(r.servers())
	for _, t := range r.tenants {
		for i := range t.granted {
			if n := t.granted[i].Load(); n > most {
				tokens += n - most
			}
		}
	}
	return tokens
}

// servers returns how many servers are asked; one may have several addresses.
func (r *run) servers() int {
	if r.cfg.Servers == nil {
		return len(r.cfg.Targets)
	}
	ids := map[ident.ServerID]bool{}
	for _, id := range r.cfg.Servers {
		ids[id] = true
	}
	return len(ids)
}

// here reports whether all servers are on this machine's loopback.
func (r *run) here() bool {
	for _, t := range r.cfg.Targets {
		if !t.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	return true
}
