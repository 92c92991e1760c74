package roundtrip

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
)

// measured is a result of two servers that answer, and one that is dead.
func measured(w *world) *Result {
	a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
	w.net.SetLink(func(p udp.Packet) udp.Fate {
		if p.To == b.Addrs[0] {
			return udp.Fate{Delay: 61700 * time.Microsecond}
		}
		return udp.Fate{Delay: 1100 * time.Microsecond}
	})
	w.net.Host(netip.MustParseAddr("10.0.0.9"))
	return w.run(w.config(a, b, discovery.Server{ID: 9, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:29292")}}))
}

// Another reader of HDR histogram logs finds every round trip, in nanoseconds, under the
// server's ID.
func TestWriteLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := measured(w)
		var log bytes.Buffer
		if err := WriteLog(&log, r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "#[Histogram log format version 1.3]\n#[StartTime: 2524608001 (seconds since epoch)") {
			t.Errorf("%s", log.String())
		}
		reader := hdr.NewHistogramLogReader(&log)
		for i, want := range []time.Duration{2200 * time.Microsecond, 62800 * time.Microsecond} {
			h, err := reader.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatal(h, err)
			}
			if h.Tag() != r.Paths[i].Server.String() || h.TotalCount() != 500 || h.SignificantFigures() != 3 {
				t.Errorf("%s: %d", h.Tag(), h.TotalCount())
			}
			if h.Min() > int64(want) || h.Max() < int64(want) || h.Max()-h.Min() > int64(want)/1000 {
				t.Errorf("from %d to %d, want %v", h.Min(), h.Max(), want)
			}
			if h.StartTimeMs() != r.At.UnixMilli() || h.EndTimeMs()-h.StartTimeMs() != 10_000 {
				t.Errorf("from %d to %d", h.StartTimeMs(), h.EndTimeMs())
			}
		}
		if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
			t.Errorf("one more: %v, %v", h, err)
		}
	})
}

// Three digits are told apart from a microsecond to a minute.
func TestDigits(t *testing.T) {
	for d := time.Microsecond; d <= Longest; d = d * 7 / 5 {
		p := Path{trips: hdr.New(1, int64(Longest), digits)}
		p.add(d)
		if got := time.Duration(p.trips.ValueAtPercentile(50)); got < d || got-d > d/1000 {
			t.Errorf("%v became %v", d, got)
		}
	}
}

func TestWriteTable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var text strings.Builder
		r := measured(w)
		if err := WriteTable(&text, r); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`^round trips in ms, 50/s for 10s\n\n`,
			`\n +server +address +n +loss +min +p50 +p90 +p99 +p99\.9 +max\n`,
			` 10\.0\.0\.1:29292 +500 +0\.00% +2\.200 +2\.200 +2\.200 +2\.200 +2\.200 +2\.200\n`,
			`\n +9 +10\.0\.0\.9:29292 +500 +100\.00% +- +- +- +- +- +-\n\n9 at 10\.0\.0\.9:29292: no answer; `,
		} {
			if !regexp.MustCompile(want).MatchString(text.String()) {
				t.Errorf("no %s in\n%s", want, text.String())
			}
		}
	})
}

func TestJSON(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, err := json.Marshal(measured(w))
		if err != nil {
			t.Fatal(err)
		}
		var j resultJSON
		if err := json.Unmarshal(b, &j); err != nil {
			t.Fatal(err)
		}
		if p := j.Paths[1]; p.Asked != 500 || p.Loss != 0 || *p.Trips != (tripsJSON{62.8, 62.8, 62.8, 62.8, 62.8, 62.8}) {
			t.Errorf("%s", b)
		}
		if p := j.Paths[2]; p.Server != "9" || p.Lost != 500 || p.Loss != 1 || p.Trips != nil {
			t.Errorf("%s", b)
		}
	})
}

// What is out of the ordinary is told, each with what to do.
func TestNotes(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:29292")
	ordinary := Path{Server: 3, Addr: at, Asked: 10, Answered: 10, Lag: lagTold}
	for want, change := range map[string]func(p *Path){
		"":                               func(*Path) {},
		"4 could not be sent":            func(p *Path) { p.Unsent, p.Error = 4, "no route" },
		"server 8 answers there instead": func(p *Path) { p.Stranger, p.Invalid, p.Answered = 8, 10, 0 },
		"2 answers are not of this key":  func(p *Path) { p.Forged, p.Invalid = 2, 2 },
		"1 datagrams came in that":       func(p *Path) { p.Forged, p.Invalid = 2, 3 },
		"no answer; weir doctor":         func(p *Path) { p.Answered = 0 },
		"1 answers came after 1s":        func(p *Path) { p.Late = 1 },
		"1 answers came twice":           func(p *Path) { p.Repeats = 1 },
		"left 21ms after its time":       func(p *Path) { p.Lag = 21 * time.Millisecond },
	} {
		p := ordinary
		change(&p)
		got := strings.Join(notes(&Result{Timeout: time.Second, Paths: []*Path{&p}}), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
