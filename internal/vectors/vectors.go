// Package vectors loads the golden datagrams of testdata/vectors for tests: requests and reports as
// other implementations sent them, responses with what a client must make of them, and PDUs whose
// layout is easily misread. testdata/README.md describes the files. Only tests import it.
//
// It knows nothing of the packages under test and decodes nothing but hexadecimal digits, so that
// any of them can use it, from inside too.
package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Hex is a byte string, in the files written as hexadecimal digits.
type Hex []byte

// UnmarshalText reads hexadecimal digits.
func (h *Hex) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("vectors: not hexadecimal: %w", err)
	}
	*h = b
	return nil
}

// Guard is the input that a latency guard was made from. Durations are milliseconds.
type Guard struct {
	Tracker    Hex    `json:"tracker"` // the name, not the ID
	TTL        uint32 `json:"ttl"`
	MaxSamples uint32 `json:"max"`
	BufferSize uint32 `json:"buffer"` // layout 1 only
	MinSamples uint32 `json:"min"`
	Threshold  uint32 `json:"below"`
}

// Resource is the input that a token demand was made from.
type Resource struct {
	Bucket Hex    `json:"bucket"` // the name, not the ID
	Window uint32 `json:"window"` // ms
	Limit  uint32 `json:"limit"`  // tokens a window
	Tokens uint16 `json:"tokens"`
}

// Observation is the input that a report block was made from. Durations are milliseconds.
type Observation struct {
	Tracker    Hex    `json:"tracker"` // the name, not the ID
	TTL        uint32 `json:"ttl"`
	MaxSamples uint32 `json:"max"`
	BufferSize uint32 `json:"buffer"` // layout 1 only
	MinSamples uint32 `json:"min"`
	Latency    uint32 `json:"took"`
}

// Sent is what requests and reports have in common.
type Sent struct {
	Case     string `json:"case"`
	Client   string `json:"client"` // which implementation sent it
	Layout   int    `json:"layout"` // 1 or 2
	Key      string `json:"key"`    // a synthetic API key
	Identity Hex    `json:"identity"`
	Time     uint64 `json:"time"` // Unix ms
	Steering uint8  `json:"steering"`
	Nonce    Hex    `json:"nonce"`    // AES mode only
	Datagram Hex    `json:"datagram"` // as sent
	PDU      Hex    `json:"pdu"`      // in clear, whatever the mode
}

// OwnTrackerIDs reports whether the client derived its tracker IDs in a way of its own, so that
// only the blocks' other fields can be checked.
func (s *Sent) OwnTrackerIDs() bool { return s.Client == "py-2" }

// Request is a resource request as another implementation sent it.
type Request struct {
	Sent
	DedupTTL  uint32     `json:"dedup"` // ms
	Guards    []Guard    `json:"guards"`
	Resources []Resource `json:"resources"`
	Label     Hex        `json:"label"`
}

// Report is a latency report as another implementation sent it.
type Report struct {
	Sent
	Observations []Observation `json:"observations"`
}

// Response is a request, a response to it, and what a client must make of the response.
type Response struct {
	Case      string     `json:"case"`
	Layout    int        `json:"layout"`
	Key       string     `json:"key"`
	Members   []uint64   `json:"members"` // the server IDs in the membership snapshot
	Guards    []Guard    `json:"guards"`
	Resources []Resource `json:"resources"`
	Request   Hex        `json:"request"`  // datagram
	Response  Hex        `json:"response"` // datagram
	PDU       Hex        `json:"pdu"`      // of the response, in clear, before the damage that the case names
	Accept    bool       `json:"accept"`
	Reason    string     `json:"reason"`   // when not accepted
	Decision  Decision   `json:"decision"` // when accepted
}

// Decision is what an accepted response decides. Blocks are in the response's order.
type Decision struct {
	Granted   bool             `json:"granted"`
	Server    uint64           `json:"server"`
	KeepPort  bool             `json:"keep_port"`
	Guards    []GuardResult    `json:"guards"`
	Resources []ResourceResult `json:"resources"`
}

// GuardResult is the outcome of one guard.
type GuardResult struct {
	ID        Hex    `json:"id"`
	Threshold uint32 `json:"threshold"` // ms, as the response has it
	Latency   uint32 `json:"latency"`   // ms
	Passed    bool   `json:"passed"`
}

// ResourceResult is the outcome of one resource.
type ResourceResult struct {
	ID      Hex    `json:"id"`
	Deficit uint16 `json:"deficit"`
	Rate    uint32 `json:"rate"`
}

// Trap is a PDU in clear that a careless layout rule misreads.
type Trap struct {
	Case         string `json:"case"`
	Kind         string `json:"kind"` // request or report
	Layout       int    `json:"layout"`
	PDU          Hex    `json:"pdu"`
	Guards       int    `json:"guards"`
	Resources    int    `json:"resources"`
	Observations int    `json:"observations"`
}

// Requests returns every request.
func Requests(tb testing.TB) []Request { return load[Request](tb, "requests.json") }

// Reports returns every report.
func Reports(tb testing.TB) []Report { return load[Report](tb, "reports.json") }

// Responses returns every response.
func Responses(tb testing.TB) []Response { return load[Response](tb, "responses.json") }

// Traps returns every layout trap.
func Traps(tb testing.TB) []Trap { return load[Trap](tb, "traps.json") }

// load reads one file, refusing fields that it does not know and files that are empty.
func load[T any](tb testing.TB, name string) []T {
	tb.Helper()
	path, err := find(filepath.Join("testdata", "vectors", name))
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("vectors: %v", err)
	}
	var entries []T
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&entries); err != nil {
		tb.Fatalf("vectors: %s: %v", name, err)
	}
	if len(entries) == 0 {
		tb.Fatalf("vectors: %s holds nothing", name)
	}
	return entries
}

// find looks for a file in the directory in which the test runs and those above it.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("vectors: %w", err)
	}
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("vectors: no %s here or above", name)
		}
		dir = up
	}
}
