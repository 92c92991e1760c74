package doctor

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/weirhq/weir/ident"
)

// A Report is all that was found. It never holds a secret.
type Report struct {
	At      time.Time `json:"at"` // by this machine's clock
	Given   Given     `json:"given"`
	DNS     *DNS      `json:"dns,omitempty"` // nil where the servers were given
	Servers []Server  `json:"servers"`       // oldest first
	Path    *Path     `json:"client,omitempty"`
	Verdict Verdict   `json:"verdict"`
	// Diagnoses are what it comes to, what is most certain to matter first.
	Diagnoses []Diagnosis `json:"diagnoses"`
	Took      Millis      `json:"took_ms"`
}

// Verdict is a report in a word.
type Verdict string

// The verdicts.
const (
	Well       Verdict = "well"        // every address answers, and a client gets decisions
	Degraded   Verdict = "degraded"    // a client gets decisions, but something fails
	NoDecision Verdict = "no decision" // a client gets none
)

// Millis is a duration that JSON has in milliseconds.
type Millis time.Duration

// MarshalJSON writes milliseconds with three decimals.
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(m).Microseconds()) / 1000)
}

// Given is what the client was given.
type Given struct {
	KeyID       uint64 `json:"key_id,string"`
	Mode        string `json:"mode"` // none, cookie, aes
	Legacy      bool   `json:"legacy_key,omitempty"`
	Place       string `json:"place"` // where servers are looked for, in words
	Layout      int    `json:"layout"`
	Policy      string `json:"policy"`
	HorizonMs   uint32 `json:"horizon_ms"`
	DedupTTLMs  uint32 `json:"quota_dedup_ttl_ms"`
	WindowMs    uint32 `json:"quota_rate_window_ms"`
	RateBuckets uint32 `json:"quota_rate_buckets"`
	Trackers    uint32 `json:"quota_latency_services"`
}

// DNS is what the lookups came to.
type DNS struct {
	Asked   string   `json:"asked"` // the DNS servers
	Name    string   `json:"name"`  // whose SRV records list the servers
	TTL     Millis   `json:"ttl_ms"`
	Took    Millis   `json:"took_ms"`
	Error   string   `json:"error,omitempty"`
	Failure Failure  `json:"failure,omitempty"`
	Records []Record `json:"records"`
	Hosts   []Host   `json:"hosts"`
	// Elsewhere are other names at which servers are found although there are none
	// at this one.
	Elsewhere []Elsewhere `json:"elsewhere,omitempty"`
}

// Failure is why a lookup found nothing.
type Failure string

// The failures of a lookup.
const (
	NoName   Failure = "no such name"
	NoRecord Failure = "no such record"
	Refused  Failure = "answered with an error" // REFUSED, SERVFAIL and the like
	Silent   Failure = "no answer"
	Unasked  Failure = "not asked" // this process may open no more files
)

// A Record is one SRV record.
type Record struct {
	Target  string         `json:"target"`
	Port    uint16         `json:"port"`
	ID      ident.ServerID `json:"server_id,string"` // 0 if the target names none
	Taken   bool           `json:"taken"`
	Why     string         `json:"why,omitempty"` // it was not taken
	future  bool
	unasked bool // nobody could be asked where it is
}

// A Host is the target of SRV records.
type Host struct {
	Name    string       `json:"name"`
	Addrs   []netip.Addr `json:"addresses"`
	Refused []netip.Addr `json:"refused,omitempty"` // nobody can be reached there
	Error   string       `json:"error,omitempty"`
	Failure Failure      `json:"failure,omitempty"`
	Partial string       `json:"family_failed,omitempty"` // "IPv4" or "IPv6", where only that question failed
}

// Elsewhere is another reading of the place that was given, which has servers.
type Elsewhere struct {
	Flag    string `json:"flag"` // such as "--domain=rl.example.com"
	Name    string `json:"name"`
	Servers int    `json:"servers"`
}

// A Server is one r-server and what its addresses did.
type Server struct {
	ID      ident.ServerID `json:"id,string"`
	Started time.Time      `json:"started"`
	Age     Millis         `json:"age_ms"` // by this machine's clock; negative: it starts in the future
	Oldest  bool           `json:"oldest,omitempty"`
	// Future says that a client skips it, as it starts more than a minute ahead of
	// this machine's clock.
	Future    bool       `json:"future,omitempty"`
	Endpoints []Endpoint `json:"addresses"`
}

// Path is what a client with the given policy came to.
type Path struct {
	Asked    int              `json:"asked"`
	Decided  int              `json:"decided"`
	Slowest  Millis           `json:"slowest_ms"`
	Replays  int              `json:"replays"` // decisions that took a replay
	By       []ident.ServerID `json:"-"`       // who decided, oldest first
	Servers  []string         `json:"decided_by"`
	Error    string           `json:"error,omitempty"` // of the last that was not decided
	TimedOut bool             `json:"timed_out,omitempty"`
}

// A Diagnosis is one thing that is wrong, or to be known.
type Diagnosis struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Says     string   `json:"says"`             // what is wrong, and how that shows
	Do       string   `json:"do,omitempty"`     // what to do next
	Unsure   string   `json:"unsure,omitempty"` // what could not be told apart from here
}

// Severity is what a diagnosis means to a client.
type Severity string

// The severities.
const (
	Fault Severity = "fault" // it costs decisions, answers or time
	Note  Severity = "note"  // it costs nothing now
)
