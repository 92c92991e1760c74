package sim

import "time"

// Measures are what one run was like. docs/evaluator.md, "Measures", defines each number. All
// counts are exact; ratios are made of them at the end, by [Scalars]. Durations are whole
// nanoseconds.
type Measures struct {
	Requests    RequestCounts `json:"requests"`
	Arrival     OracleCounts  `json:"arrival_oracle"` // against the oracle in arrival order
	Submit      OracleCounts  `json:"submit_oracle"`  // against the oracle in submit order
	Net         NetTokens     `json:"net_tokens"`
	Over        OverLimit     `json:"over_limit"`
	Executed    Executions    `json:"executions"`
	Latency     Latencies     `json:"decision_latency_ns"`
	Timeline    Timeline      `json:"timeline"`
	Faults      []FaultEffect `json:"faults"`
	Datagrams   Datagrams     `json:"datagrams"`
	Health      Datagrams     `json:"datagrams_in_health"`
	Dedup       DedupUse      `json:"dedup"`
	Disagree    Disagreements `json:"disagreements"`
	Steering    SteeringUse   `json:"steering"`
	Answers     Answers       `json:"answers"`
	Services    []ServiceUse  `json:"services"`
	Losses      Losses        `json:"losses"`
	Queue       Histogram     `json:"queue_datagrams"`      // a receive queue's length at each arrival, it included
	Unfollowed  uint64        `json:"unfollowed_datagrams"` // that came so late that their request was no longer followed
	MeasuredFor time.Duration `json:"measured_for_ns"`      // the scenario's length without its warmup
}

// RequestCounts counts logical requests by how they ended.
type RequestCounts struct {
	Submitted  uint64 `json:"submitted"`
	Refused    uint64 `json:"refused"` // at once, by the client
	Granted    uint64 `json:"granted"`
	Rejected   uint64 `json:"rejected"`
	TimedOut   uint64 `json:"timed_out"`
	SendFailed uint64 `json:"send_failed"`
	Unended    uint64 `json:"unended"` // that the run left without an end
}

// Decided returns how many requests were granted or rejected.
func (c *RequestCounts) Decided() uint64 { return c.Granted + c.Rejected }

// OracleCounts compares clients' decisions with those of an oracle.
type OracleCounts struct {
	Judged      uint64 `json:"judged"` // decided requests that the oracle saw
	FalseGrant  uint64 `json:"false_grants"`
	FalseDenial uint64 `json:"false_denials"`
	// Of the requests in health.
	HealthJudged uint64 `json:"health_judged"`
	HealthFalse  uint64 `json:"health_false"`
	// Of the requests about which two servers disagreed.
	SplitJudged uint64 `json:"disagreed_judged"`
	SplitFalse  uint64 `json:"disagreed_false"`
	// Undecided requests, by what the oracle said.
	UndecidedGrant  uint64 `json:"undecided_grants"`
	UndecidedDenial uint64 `json:"undecided_denials"`
}

// NetTokens sums, over buckets and tumbling windows in which requests were submitted, the tokens
// that clients were granted less those of the submit-order oracle.
type NetTokens struct {
	Windows  uint64    `json:"windows"`
	Absolute uint64    `json:"absolute_tokens"` // the sum of absolute values
	Signed   int64     `json:"signed_tokens"`   // the plain sum
	Max      uint64    `json:"max_tokens"`      // the greatest absolute value
	Limits   []NetRate `json:"limits"`          // by limit, ascending
}

// NetRate is the part of [NetTokens] that is due to buckets of one limit.
type NetRate struct {
	Limit    uint32 `json:"limit_tokens"`
	Windows  uint64 `json:"windows"`
	Absolute uint64 `json:"absolute_tokens"`
	Max      uint64 `json:"max_tokens"`
}

// OverLimit is what clients were granted beyond limits, by all servers together.
type OverLimit struct {
	Granted  uint64 `json:"granted_tokens"`
	Excess   uint64 `json:"excess_tokens"` // the fewest that would have to go for no window to exceed its limit
	Grants   uint64 `json:"excess_grants"` // grants with excess tokens
	WorstPPM uint64 `json:"worst_window_over_limit_ppm"`
}

// Executions is what servers consumed without a client's decision that says so.
type Executions struct {
	Again        uint64 `json:"executed_again"`         // executions of an identity by a server that had executed it
	AgainTokens  uint64 `json:"executed_again_tokens"`  // granted by those
	ErrorGrants  uint64 `json:"undecided_but_consumed"` // undecided requests that a server granted
	ErrorTokens  uint64 `json:"undecided_but_consumed_tokens"`
	DeniedGrants uint64 `json:"rejected_but_consumed"` // requests that were rejected though a server granted them
	DeniedTokens uint64 `json:"rejected_but_consumed_tokens"`
}

// Latencies are the times from submit to decision.
type Latencies struct {
	Decided  Histogram `json:"decided"` // granted and rejected
	Granted  Histogram `json:"granted"`
	Rejected Histogram `json:"rejected"`
	Oldest   Histogram `json:"by_oldest"`   // decided by the oldest server of those asked
	Fallback Histogram `json:"by_fallback"` // decided by another
	TimedOut Histogram `json:"timed_out"`
}

// Timeline is the run in bins of equal length, from time 0 on. A request belongs to the bin in
// which it was submitted.
type Timeline struct {
	Bin  time.Duration `json:"bin_ns"`
	Bins []Bin         `json:"bins"`
}

// Bin is one of a [Timeline].
type Bin struct {
	Submitted uint64 `json:"submitted"`
	Decided   uint64 `json:"decided"`
	False     uint64 `json:"false"`    // decisions that the arrival-order oracle contradicts
	Compared  uint64 `json:"compared"` // requests that two servers or more executed
	Disagreed uint64 `json:"disagreed"`
}

// FaultEffect is what a fault did.
type FaultEffect struct {
	Fault int           `json:"fault"` // an index into Scenario.Faults
	Begin time.Duration `json:"begin_ns"`
	End   time.Duration `json:"end_ns"` // the scenario's length at most, or Begin if that is later

	Lowest    PerMillion    `json:"lowest_availability_ppm"` // of a bin
	Submitted uint64        `json:"submitted"`               // until recovery
	Lost      uint64        `json:"undecided"`               // of those
	Recovery  time.Duration `json:"recovery_ns"`             // from Begin until availability stayed at 99.9 % or more
	Recovered bool          `json:"recovered"`               // before the next fault or the end

	Disagreed   uint64        `json:"disagreed"`      // requests submitted from the effect's end on
	Convergence time.Duration `json:"convergence_ns"` // until the last of those
	Watched     time.Duration `json:"watched_ns"`     // for how long disagreement was looked for
}

// Datagrams counts what was sent.
type Datagrams struct {
	Decided    uint64 `json:"decided"` // requests, for ratios
	First      uint64 `json:"first"`
	Replay     uint64 `json:"replay"`
	Completion uint64 `json:"completion_delivery"`
	Answer     uint64 `json:"answers"`
	Report     uint64 `json:"reports"`
	Probe      uint64 `json:"probes"` // of clients that fail fast, and answers to them
}

// DedupUse is how servers used their memory for repeats.
type DedupUse struct {
	FromMemory uint64         `json:"answered_from_memory"`
	Verdicts   ServerVerdicts `json:"verdicts"`
	Late       uint64         `json:"dropped_late"`     // had waited longer than their dedup TTL
	Degraded   uint64         `json:"degraded"`         // identities forgotten early, for want of room
	Window     Histogram      `json:"window_share_ppm"` // lag of the last arrival behind the first, in shares of the TTL
}

// Disagreements counts requests that servers answered differently.
type Disagreements struct {
	Compared  uint64 `json:"compared"` // requests that two servers or more executed
	Disagreed uint64 `json:"disagreed"`
}

// SteeringUse is how clients followed advice.
type SteeringUse struct {
	Applied Histogram `json:"applied_after_ns"`
	Advised uint64    `json:"advised_answers"`
	Pending uint64    `json:"unapplied"` // clients whose advice was not followed at the end
}

// Answers counts answers that reached clients.
type Answers struct {
	Verdicts      ClientVerdicts `json:"verdicts"`
	Contradictory uint64         `json:"contradictory"` // requests with valid answers of both outcomes
}

// ServiceUse is what a service did.
type ServiceUse struct {
	Service   int           `json:"service"`  // an index into Scenario.Services
	Admitted  uint64        `json:"admitted"` // pieces of work that began to wait
	Completed uint64        `json:"completed"`
	Good      uint64        `json:"good"`    // completed below their guard's threshold
	Refused   uint64        `json:"refused"` // found no place
	Rejected  uint64        `json:"rejected"`
	Busy      time.Duration `json:"busy_ns"`     // summed over places
	Capacity  time.Duration `json:"capacity_ns"` // what Busy can come to; 0 without a bound
	Idle      uint64        `json:"idle_seconds"`
	Latency   Histogram     `json:"work_latency_ns"`
	Seconds   []Second      `json:"seconds"`
}

// Second is a second of a [ServiceUse], from time 0 on.
type Second struct {
	Admitted  uint64 `json:"admitted"`
	Completed uint64 `json:"completed"`
	Good      uint64 `json:"good"`
	Rejected  uint64 `json:"rejected"` // requests submitted in it that were rejected
}

// Losses counts what did not arrive.
type Losses struct {
	Requests Causes `json:"requests_and_reports"`
	Answers  Causes `json:"answers"`
}
