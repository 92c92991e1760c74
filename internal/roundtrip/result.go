package roundtrip

import (
	"encoding/json"
	"net/netip"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/ident"
)

// Round trips are kept in nanoseconds with three significant digits, up to Longest.
const (
	Longest = 60 * time.Second
	digits  = 3
)

// A Result is what was measured.
type Result struct {
	At          time.Time     // when the first question that counts was due
	Took        time.Duration // from then on: Config.For, unless it was interrupted
	Rate        int           // questions a second to each address
	Timeout     time.Duration
	Interrupted bool // it ended before its time
	Paths       []*Path
}

// Answered returns how many questions that count were answered in time, over all paths.
func (r *Result) Answered() int {
	n := 0
	for _, p := range r.Paths {
		n += p.Answered
	}
	return n
}

// A Path is one address of a server, and what became of the questions to it. Those of the
// warm-up count nowhere, nor do those that were still open at an interruption.
type Path struct {
	Server ident.ServerID
	Addr   netip.AddrPort
	Tag    string // the server's ID, and its address if there are several

	Asked    int            // datagrams sent
	Answered int            // in time
	Late     int            // after the timeout; these are lost too
	Repeats  int            // further answers to the same question
	Unsent   int            // questions that this machine could not send; they are not asked
	Invalid  int            // datagrams that answer no question, of all kinds, those of the warm-up too
	Forged   int            // of these: not of this key, or authenticated in another mode
	Stranger ident.ServerID // who answered instead, with this key; 0 for nobody

	// Lag is by how much the latest question left after its time.
	Lag time.Duration
	// Error is why the last question that was not sent was not, or why none was.
	Error string

	Least, Most time.Duration // exact; 0 without an answer
	trips       *hdr.Histogram
}

// Lost returns how many questions had no answer in time.
func (p *Path) Lost() int { return p.Asked - p.Answered }

// Loss returns the share of questions that had no answer in time, from 0 to 1.
func (p *Path) Loss() float64 {
	if p.Asked == 0 {
		return 0
	}
	return float64(p.Lost()) / float64(p.Asked)
}

// Quantile returns what a percentage of the round trips did not exceed, within three
// digits. It is 0 if there are none.
func (p *Path) Quantile(percent float64) time.Duration {
	if p.Answered == 0 {
		return 0
	}
	return min(max(time.Duration(p.trips.ValueAtPercentile(percent)), p.Least), p.Most)
}

// add counts a round trip.
func (p *Path) add(d time.Duration) {
	d = max(d, 0)
	if p.Answered == 0 || d < p.Least {
		p.Least = d
	}
	p.Answered++
	p.Most = max(p.Most, d)
	// It refuses only what is out of its range, which the timeout is not.
	_ = p.trips.RecordValue(int64(d))
}

type resultJSON struct {
	At          time.Time  `json:"at"`
	TookMs      float64    `json:"took_ms"`
	Rate        int        `json:"rate"`
	TimeoutMs   float64    `json:"timeout_ms"`
	Interrupted bool       `json:"interrupted"`
	Paths       []pathJSON `json:"paths"`
}

// pathJSON has server IDs as strings, because many JSON readers lose digits of 64-bit
// numbers.
type pathJSON struct {
	Server   string     `json:"server_id"`
	Addr     string     `json:"address"`
	Tag      string     `json:"tag"`
	Asked    int        `json:"asked"`
	Answered int        `json:"answered"`
	Lost     int        `json:"lost"`
	Loss     float64    `json:"loss"`
	Late     int        `json:"late"`
	Repeats  int        `json:"repeats"`
	Unsent   int        `json:"unsent"`
	Invalid  int        `json:"invalid"`
	Forged   int        `json:"forged"`
	Stranger string     `json:"answered_by,omitempty"`
	LagMs    float64    `json:"lag_ms"`
	Error    string     `json:"error,omitempty"`
	Trips    *tripsJSON `json:"round_trips_ms,omitempty"`
}

type tripsJSON struct {
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// MarshalJSON writes the counts, and the usual quantiles in milliseconds.
func (r *Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		At: r.At, TookMs: ms(r.Took), Rate: r.Rate, TimeoutMs: ms(r.Timeout), Interrupted: r.Interrupted,
		Paths: make([]pathJSON, len(r.Paths)),
	}
	for i, p := range r.Paths {
		pj := pathJSON{
			Server: p.Server.String(), Addr: p.Addr.String(), Tag: p.Tag,
			Asked: p.Asked, Answered: p.Answered, Lost: p.Lost(), Loss: p.Loss(), Late: p.Late, Repeats: p.Repeats,
			Unsent: p.Unsent, Invalid: p.Invalid, Forged: p.Forged, LagMs: ms(p.Lag), Error: p.Error,
		}
		if p.Stranger != 0 {
			pj.Stranger = p.Stranger.String()
		}
		if p.Answered > 0 {
			pj.Trips = &tripsJSON{
				Min: ms(p.Least), P50: ms(p.Quantile(50)), P90: ms(p.Quantile(90)), P99: ms(p.Quantile(99)),
				P999: ms(p.Quantile(99.9)), Max: ms(p.Most),
			}
		}
		j.Paths[i] = pj
	}
	return json.Marshal(j)
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
