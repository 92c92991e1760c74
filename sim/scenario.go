package sim

import (
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// PerMillion is a probability in millionths, 0 to 1,000,000.
type PerMillion uint32

// A Scenario is everything that a run depends on besides its seed. It is not changed by a run
// and may be shared. [Scenario.Validate] says what is wrong with one.
type Scenario struct {
	Name    string
	Purpose string // in one sentence, what it shows

	// Requests are made in [0, Length). The run goes on until all of them have ended and their
	// datagrams have arrived.
	Length time.Duration
	// Warmup is the part at the beginning that is not measured.
	Warmup time.Duration

	Policy   policy.Policy
	FailFast core.FailFastConfig
	Refresh  core.RefreshConfig
	Layout   wire.Layout   // 0 is layout 2
	Auth     apikey.Auth   // 0 is AuthNone: nobody forges in here, and sealing costs time
	Quotas   apikey.Quotas // the zero value is apikey.DefaultQuotas

	Buckets  []Bucket
	Trackers []Tracker
	Servers  []Server
	Clients  []Clients
	Links    []Link
	DNS      DNS
	Services []Service
	Faults   []Fault
}

// A Bucket is a family of Count rate buckets, named "name" if there is one, else "name/0" and
// so on. Which of them a request takes from is drawn by Zipf's law.
type Bucket struct {
	Name   string
	Limit  uint32        // tokens a window
	Window time.Duration // whole milliseconds
	Count  int           // 0 is 1
	// Zipf is the exponent in hundredths: the n-th bucket is drawn in proportion to
	// n^(-Zipf/100). 0 draws all alike.
	Zipf uint32
}

// A Tracker is a latency tracker.
type Tracker struct {
	Name       string
	TTL        time.Duration // whole milliseconds
	MaxSamples uint32
	MinSamples uint32
}

// A Server is one r-server. The first in the list with the greatest Age is the oldest.
type Server struct {
	Name string
	Age  time.Duration // for how long it has run at time 0, whole seconds, at least 1 s

	// Workers is the number of its receive queues, each with a worker; 0 is 1. A client's socket
	// belongs to one of them, by a hash of client and port.
	Workers int
	Queue   int  // datagrams that a receive queue holds; 0 is 1024
	Service Dist // how long a worker takes for one datagram
	// Steering: a worker whose queue is longer than 8, and at least twice as long as the mean of all,
	// answers "change the port".
	Steering bool
	Skew     time.Duration // its wall clock minus the true one

	Estimator   limiter.Estimator
	Pacing      bool
	Probe       time.Duration // limiter.Config.Probe; 0 is its default
	Shadow      bool
	Identities  int           // limiter.Config.Identities; 0 is its default
	AnswerBytes int           // limiter.Config.AnswerBytes; 0 is its default
	ClockSkew   time.Duration // limiter.Config.Skew, how far timestamps may be off; 0 is its default
}

// Clients are Count r-clients that do the same, named "name" if there is one, else "name/0" and
// so on.
type Clients struct {
	Name     string
	Count    int           // 0 is 1
	Skew     time.Duration // their wall clocks minus the true one
	Arrivals Arrivals      // of each one of them
	Mix      []Choice      // what a request asks, drawn by weight
	// MaxInFlight is core.Config.MaxInFlight; 0 is its default.
	MaxInFlight int
}

// ArrivalKind is how requests come about.
type ArrivalKind uint8

// The kinds of arrivals, and which fields of [Arrivals] they use.
const (
	ArriveConstant ArrivalKind = 1 + iota // evenly: Every
	ArrivePoisson                         // at random: Every is the mean
	ArriveBurst                           // Size at once: Every
	ArriveClosed                          // Size callers, each asks again when its request has ended and Think has passed
	ArriveTrace                           // at Times
)

// Arrivals say when a client makes requests.
type Arrivals struct {
	Kind  ArrivalKind
	Every time.Duration   // between two arrivals or bursts, above 0
	Start time.Duration   // no arrival before
	Stop  time.Duration   // none from then on; 0 is the scenario's length
	Size  int             // requests of a burst, or callers
	Think Dist            // what a caller does between two requests, work aside
	Times []time.Duration // since Start, in order
}

// A Choice is a request that clients make.
type Choice struct {
	Weight uint32 // 0 is 1
	Take   []Take
	Guard  []Guard
	Work   string // the service that does the granted work; empty for none
}

// Take is one resource block of a request.
type Take struct {
	Bucket string // a family's name; the bucket is drawn once for each request and family
	Tokens uint16
}

// Guard is one latency guard of a request.
type Guard struct {
	Tracker   string
	Threshold time.Duration // whole milliseconds
}

// A Link says how datagrams fare between clients and servers. From and To are a name, a
// group's name or "*": one of them is clients, the other servers. Of several links that fit, the
// last one counts. Without any, datagrams take no time and none is lost.
type Link struct {
	From, To  string
	Both      bool // the way back, too
	Delay     Dist
	FIFO      bool       // none overtakes another
	Loss      PerMillion // of each datagram
	Burst     Burst      // loss in bursts, besides
	Duplicate PerMillion // chance that it arrives twice, each after a delay of its own
	Reorder   PerMillion // chance that Late is added to its delay
	Late      Dist
}

// Burst is the Gilbert-Elliott model of loss. Before each datagram a link goes from good to bad
// by chance Enter and from bad to good by chance Leave; while it is bad it loses each datagram
// with chance Loss. The zero value loses nothing.
type Burst struct {
	Enter, Leave, Loss PerMillion
}

// DNS is how clients learn of servers. Its content follows the servers: one that is killed leaves
// it after Leave, and one that starts is in it after Join; a negative duration means never.
type DNS struct {
	TTL   time.Duration // of its records; 0 is 5 s
	Delay Dist          // of each lookup
	Join  time.Duration
	Leave time.Duration
	// Propagation is drawn once for each client and is how much later than others it sees
	// changes.
	Propagation Dist
	// Members are the servers that are in it at time 0; nil is all of them.
	Members []string
}

// A Service does the work that requests are granted for, in Parallel places, first come first
// served. It reports how long the work took, its wait included, as its client would.
type Service struct {
	Name     string
	Parallel int  // 0 is 1; negative is as many as come
	Time     Dist // how long one piece of work takes once it has a place
	Tracker  string
	Sample   int // one of so many is reported, at random; 0 is 1, negative is none
	// Queue is how many wait at most; what comes beyond fails at once and is not reported. 0 is no
	// bound.
	Queue int
}

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults, and which fields of [Fault] they use besides At and For.
const (
	// FaultPartition loses every datagram: From, To, Both.
	FaultPartition FaultKind = 1 + iota
	// FaultLoss loses datagrams besides what the link loses: From, To, Both, Chance.
	FaultLoss
	// FaultDelay adds to delays: From, To, Both, Dist.
	FaultDelay
	// FaultPause stops all workers of Server, as a long garbage collection does; its queues fill.
	FaultPause
	// FaultSlow makes every datagram of Server take Dist longer.
	FaultSlow
	// FaultKill ends Server. With For it starts again then: a new ID, no state.
	FaultKill
	// FaultForget makes Server lose its dedup state, and all other, as a restart does, but not its ID.
	FaultForget
	// FaultClock adds Step to the wall clock of Server or From (clients); For takes it back.
	FaultClock
	// FaultMembers makes DNS name just Members, whoever lives.
	FaultMembers
	// FaultEmpty makes DNS answer that there are no servers.
	FaultEmpty
	// FaultResolver makes lookups fail.
	FaultResolver
	// FaultStranger makes DNS name, besides, a server that does not exist.
	FaultStranger
	// FaultWork makes the work of Service take Dist longer.
	FaultWork
)

// A Fault is something that goes wrong at At, for For; 0 is for good.
type Fault struct {
	Kind     FaultKind
	At, For  time.Duration
	Server   string
	Service  string
	From, To string // as in [Link]
	Both     bool
	Chance   PerMillion
	Dist     Dist
	Step     time.Duration
	Members  []string
}
