package demo

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/ident"
)

// Narrator is told what happens, in the order in which it does, by one goroutine.
type Narrator interface {
	Tell(Event)
}

// Event is one of the types below: what happened, in figures and without words.
type Event interface{ event() }

// Act numbers the parts of a demo.
type Act int

// The acts, in their order.
const (
	ActSetUp Act = iota + 1
	ActTokens
	ActAtomic
	ActGuard
	ActFailover
	ActSummary
)

type (
	// Opening is the first event.
	Opening struct {
		Expected time.Duration
		System   string // runtime.GOOS
	}
	// ActBegins begins an act.
	ActBegins struct{ Act Act }
	// KeyMade tells of the API key, by its redacted text, and of its file.
	KeyMade struct{ Key, File string }
	// ChildServes tells of a child process that serves.
	ChildServes struct {
		Name string
		PID  int
		Addr string
		ID   ident.ServerID // 0 for the DNS server
	}
	// OldestIs tells which server is the oldest.
	OldestIs struct{ Name string }
	// Found tells that the client has found the servers.
	Found struct {
		Service string // the DNS name
		Servers int
		Took    time.Duration
	}
	// Asked tells of one question and its decision.
	Asked struct {
		N        int
		By       string // name of the server that decided
		Decision weir.Decision
		Took     time.Duration
	}
	// Read tells how full buckets are.
	Read struct{ Resources []weir.ResourceResult }
	// Reported tells of latency reports.
	Reported struct {
		Reports int
		Latency time.Duration
	}
	// LoadBegins tells of the load that the last act puts on.
	LoadBegins struct {
		Callers int
		Every   time.Duration // between two questions of one caller, at least
		Wait    time.Duration // the policy's for the oldest server alone
		Horizon time.Duration // the policy's for any server
	}
	// LoadRow tells of the last second or less of load.
	LoadRow struct {
		At    time.Duration // since the load began
		Stats PhaseStats
	}
	// Killed tells that a server was killed.
	Killed struct {
		Name string
		PID  int
	}
	// Removed tells that the dead server was taken out of DNS.
	Removed struct{ Name string }
	// Dropped tells that the client has noticed.
	Dropped struct {
		Name string
		Took time.Duration // since Removed
	}
	// Checked tells of a promise.
	Checked Check
	// Summary sums up a demo whose acts were all played.
	Summary struct {
		Result *Result
		Wait   time.Duration // the policy's for the oldest server alone
	}
	// Farewell is the last event of a demo that ends by itself.
	Farewell struct{}
	// Keeping tells that the servers stay, and how to reach them.
	Keeping struct {
		KeyFile, Domain, Resolver string
		Servers                   []ChildServes
	}
)

func (Opening) event()     {}
func (ActBegins) event()   {}
func (KeyMade) event()     {}
func (ChildServes) event() {}
func (OldestIs) event()    {}
func (Found) event()       {}
func (Asked) event()       {}
func (Read) event()        {}
func (Reported) event()    {}
func (LoadBegins) event()  {}
func (LoadRow) event()     {}
func (Killed) event()      {}
func (Removed) event()     {}
func (Dropped) event()     {}
func (Checked) event()     {}
func (Summary) event()     {}
func (Farewell) event()    {}
func (Keeping) event()     {}
