package doctor

import (
	"net/netip"

	"github.com/weirhq/weir/ident"
)

// State is what became of the requests to one address.
type State string

// The states. An address has the first that fits.
const (
	Answers   State = "answers"
	Clock     State = "wrong clock"    // it answers at other stamps only
	TTLCap    State = "dedup TTL"      // it answers with a shorter dedup TTL only
	Stranger  State = "other server"   // another server ID answers
	OtherForm State = "other layout"   // the answer is laid out otherwise
	OtherMode State = "other mode"     // the answer is authenticated in another mode
	OtherKey  State = "not authentic"  // the answer is not of this key
	Reflects  State = "reflects"       // our own datagrams come back
	Garbage   State = "no r-server"    // what comes back is none of the protocol's answers
	Closed    State = "port closed"    // ICMP: nothing listens at that port
	NoRoute   State = "unreachable"    // ICMP, or this machine: no way to that host
	Blocked   State = "blocked here"   // this machine forbids sending
	NoFamily  State = "no such family" // this machine has no socket for the address family
	NoFiles   State = "not asked"      // this process may open no more files
	NoAnswer  State = "silent"
)

// An Endpoint is one address of a server, asked by itself.
type Endpoint struct {
	Addr   netip.AddrPort `json:"address"`
	Local  uint16         `json:"local_port,omitempty"` // that was sent from: to find the datagrams in a trace
	State  State          `json:"state"`
	Sent   int            `json:"sent"` // requests for the round trip
	Lost   int            `json:"lost"`
	Min    Millis         `json:"min_ms,omitempty"`
	Median Millis         `json:"median_ms,omitempty"`
	Max    Millis         `json:"max_ms,omitempty"`
	// Offset is how far the server's clock is ahead of this machine's, give or take
	// half a round trip. It is known if Heard.
	Offset Millis `json:"clock_offset_ms,omitempty"`
	Heard  bool   `json:"heard"` // an authentic answer of any kind came
	// Long is what became of datagrams of nearly 1200 bytes; it is asked where short
	// ones are answered.
	Long *Tally `json:"long,omitempty"`
	// Guards and OtherLayout are what became of requests with a latency guard, in
	// the layout given and, if that is not answered, in the other.
	Guards      *Tally `json:"guards,omitempty"`
	OtherLayout *Tally `json:"guards_other_layout,omitempty"`
	// Fan is what became of requests with other stamps; it is asked where nothing
	// else is answered.
	Fan *Tally `json:"stamps,omitempty"`
	// LongestTTL is the longest dedup TTL of those tried that was answered.
	LongestTTL Millis         `json:"longest_dedup_ttl_ms,omitempty"`
	Seen       Seen           `json:"seen"`
	OtherID    ident.ServerID `json:"other_server_id,omitzero,string"` // who answered instead
	From       netip.AddrPort `json:"answers_from,omitzero"`           // another address that answers came from
	Error      string         `json:"error,omitempty"`                 // of sending, or what ICMP said
}

// A Tally is how many of the requests of one kind were answered.
type Tally struct {
	Bytes    int `json:"bytes"` // of the longest
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
}

// lost reports whether no request of the kind was answered, though some were sent.
func (t *Tally) lost() bool { return t != nil && t.Sent > 0 && t.Answered == 0 }

// Seen counts what came in.
type Seen struct {
	Answers     int `json:"answers"`                // authentic, of the server, to what was asked
	Strangers   int `json:"strangers,omitempty"`    // authentic, of another server
	Forged      int `json:"forged,omitempty"`       // not authentic
	OtherMode   int `json:"other_mode,omitempty"`   // in another authentication mode
	OtherLayout int `json:"other_layout,omitempty"` // authentic, in the other layout
	Mismatched  int `json:"mismatched,omitempty"`   // authentic, and answers something else
	Reflected   int `json:"reflected,omitempty"`    // our own requests
	Malformed   int `json:"malformed,omitempty"`    // nothing of the protocol
	Unrelated   int `json:"unrelated,omitempty"`    // to no request of ours
}
