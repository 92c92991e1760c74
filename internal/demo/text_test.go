package demo

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir"
)

// TestText shows what is printed, in testdata/text: "tell" and the kinds of
// events, with style or without, on a system.
func TestText(t *testing.T) {
	datadriven.RunTest(t, "testdata/text", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		text := NewText(&b, "weir", d.HasArg("style"), func(err error) { t.Error(err) })
		system := "linux"
		if d.HasArg("windows") {
			system = "windows"
		}
		for _, e := range story(system, !d.HasArg("broken"), d.HasArg("keep")) {
			text.Tell(e)
		}
		for line := range strings.Lines(b.String()) {
			// A key's path and an error are as long as they are.
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 && !strings.Contains(line, "demo.key") {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		if !d.HasArg("style") && strings.Contains(b.String(), "\x1b") {
			t.Error("plain text has escape sequences")
		}
		return strings.ReplaceAll(b.String(), "\x1b", "ESC")
	})
}

// story is what a demo tells, with figures of its own.
func story(system string, kept, keep bool) []Event {
	a := ChildServes{Name: "A", PID: 101, Addr: "127.0.0.1:40001", ID: 506476481540985}
	b := ChildServes{Name: "B", PID: 102, Addr: "127.0.0.1:40002", ID: 506476482849346}
	asked := func(n int, took time.Duration) Asked { return Asked{N: n, By: "A", Took: took} }
	check := Check{Promise: "not one request fails when a server is killed", Kept: kept, Got: "8044 questions, 0 failed"}
	result := &Result{
		Elapsed: 18500 * time.Millisecond,
		Checks:  []Check{check, {Promise: "the second server takes over", Kept: true, Got: "all by B"}},
	}
	for p := range Phase(phases) {
		st := PhaseStats{Phase: p, Decisions: 3000, By: map[string]int{"A": 3000}, P50: 312 * time.Microsecond, P99: 1234 * time.Microsecond}
		if p == OldestDead {
			st.By, st.P50, st.P99 = map[string]int{"B": 3000}, 20712*time.Microsecond, 24*time.Millisecond
		}
		result.Phases = append(result.Phases, st)
	}
	events := []Event{
		Opening{Expected: 20 * time.Second, System: system},
		ActBegins{ActSetUp},
		KeyMade{"rl-aes(key_id=7)", "/tmp/weir-demo-1/demo.key"},
		a, b,
		OldestIs{"A"},
		ChildServes{Name: "DNS", PID: 103, Addr: "127.0.0.1:40003"},
		Found{"_ratelimitly._udp.c-7.rl.test", 2, 3180 * time.Microsecond},
		ActBegins{ActTokens},
		asked(1, 291*time.Microsecond), Checked(check),
		ActBegins{ActAtomic},
		asked(2, 1500*time.Microsecond),
		Read{[]weir.ResourceResult{
			{Resource: alice.Take(0), ActualRate: 2}, {Resource: everybody.Take(0), ActualRate: 2},
		}},
		ActBegins{ActGuard},
		Reported{20, 250 * time.Millisecond},
		ActBegins{ActFailover},
		LoadBegins{8, 10 * time.Millisecond, 20 * time.Millisecond, time.Second},
		LoadRow{time.Second, result.Phases[0]},
		Killed{"A", 101},
		LoadRow{2 * time.Second, result.Phases[1]},
		Removed{"A"},
		Dropped{"A", 858400 * time.Microsecond},
		LoadRow{3 * time.Second, result.Phases[2]},
		ActBegins{ActSummary},
		Summary{result, 20 * time.Millisecond},
	}
	if !keep {
		events = append(events, Farewell{})
	} else {
		events = append(events, Keeping{"/tmp/weir-demo-1/demo.key", "c-7.rl.test", "127.0.0.1:40003", []ChildServes{b, {Name: "C", PID: 104, Addr: "127.0.0.1:40004", ID: 506476490000000}}})
	}
	return events
}

type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

func TestTextThatNobodyTakes(t *testing.T) {
	broken, told := errors.New("broken pipe"), 0
	text := NewText(full{broken}, "weir", false, func(err error) {
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		told++
	})
	text.Tell(ActBegins{ActSetUp})
	if told == 0 {
		t.Error("nobody is told that the output is broken")
	}
}
