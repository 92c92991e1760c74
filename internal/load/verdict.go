package load

import "fmt"

// What limits a load, in Result.Limit.
const (
	limitClient   = "client"
	limitServer   = "server"
	limitMachine  = "machine"
	limitInFlight = "in-flight"
	limitNone     = "none"
	limitUnknown  = "unknown"
)

// judge says what limited a load: the client, the server with the way to it, the machine that both
// share, how many may be in flight, or nothing.
func (r *Result) judge() {
	const busy, late, kept, mostly, few = 0.9, 0.5, 0.99, 0.5, 4
	answered := float64(r.Granted + r.Denied)
	due := float64(r.Sent + r.Skipped)
	switch {
	case r.Interrupted && due == 0:
		r.set(limitUnknown, "It was interrupted before requests counted.")
	case due == 0:
		r.set(limitUnknown, "No request was due in the time that counts.")
	case float64(r.Skipped) > (1-kept)*due:
		r.set(limitClient, "The limit was the client: it cannot send at this rate, and left out %d of %.0f requests.", r.Skipped, due)
	case answered == 0 && r.Wrong > 0:
		r.set(limitUnknown, "Nobody gave a right answer: %d were wrong.", r.Wrong)
	case answered == 0 && r.Late > 0:
		r.set(limitUnknown, "No answer was in time; %d came too late.", r.Late)
	case answered == 0:
		r.set(limitUnknown, "Nobody answered. weir doctor, with the same key and servers, finds out why.")
	case r.ClientCPU > busy*float64(r.Processors):
		r.set(limitClient, "The limit was the client: it used %.2f of its %d processors, so the server may be able to do more.", r.ClientCPU, r.Processors)
	case r.ClientShare > mostly:
		r.set(limitClient, "The limit was the client: answers lay in its sockets for %.0f %% of all latency, so the server is faster than these figures.", 100*r.ClientShare)
	case r.Lag != nil && r.Lag.P99 > late*r.Latency.P99 && r.Lag.P99 > 1000:
		r.set(limitClient, "The limit was the client: it sent late, by %.1f ms at the 99th percentile, which is in the latencies.", r.Lag.P99/1000)
	case answered < kept*float64(r.Sent):
		r.set(limitServer, "The limit was the server, or the way to it: of %d requests %d had no answer in time.", r.Sent, r.Lost)
	case r.Loop == "open":
		r.set(limitNone, "Nothing was the limit: the server kept up with the rate, and so did the client.")
	case r.Machine > busy:
		r.set(limitMachine, "The limit was this machine, which client and server share: its processors were busy for %.0f %% of the time, with the client for %.2f of %d.",
			100*r.Machine, r.ClientCPU, r.Processors)
	case r.InFlight < few*r.Processors:
		r.set(limitInFlight, "The limit was how few are in flight: more of them show the most that the server does.")
	default:
		r.set(limitServer, "The limit was the server, or the way to it: the client used %.2f of its %d processors, and answers lay in its sockets for %.0f %% of all latency.",
			r.ClientCPU, r.Processors, 100*r.ClientShare)
	}
}

func (r *Result) set(limit, format string, args ...any) {
	r.Limit, r.Verdict = limit, fmt.Sprintf(format, args...)
}
