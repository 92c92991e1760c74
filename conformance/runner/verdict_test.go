package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
)

func memory() udp.Stack {
	return udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"))
}

// slowStack is a machine on which a server's answer takes a while to get out.
type slowStack struct {
	udp.Stack
	by   time.Duration
	slow *bool
}

type slowConn struct {
	udp.Conn
	stack slowStack
}

func (s slowStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := s.Stack.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return slowConn{c, s}, nil
}

func (c slowConn) Write(ds []udp.Datagram) (int, error) {
	if *c.stack.slow {
		time.Sleep(c.stack.by)
	}
	return c.Conn.Write(ds)
}

// TestSlowMachine: a right client on a machine that is late neither passes nor fails.
// When the machine is itself again it passes, and what was found before is told.
func TestSlowMachine(t *testing.T) {
	for _, recovers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow := true
			host := memory()
			var result Result
			started := 0
			s, err := Run(context.Background(), Config{
				Start: func(context.Context) (Client, error) {
					started++
					slow = !recovers || started < 4 // the first is asked for its hello
					return newNaive(host, ""), nil
				},
				Stack: slowStack{host, 400 * time.Millisecond, &slow}, Match: regexp.MustCompile("^fallback/oldest-of-three$"),
				Done: func(r Result) { result = r },
			})
			if err != nil {
				t.Fatal(err)
			}
			want := Inconclusive
			if recovers {
				want = Passed
			}
			if result.Verdict != want || result.Attempts != 3 || s.Conforms() != recovers {
				t.Errorf("recovers: %v: %+v", recovers, result)
			}
			if says := map[bool]string{false: "late", true: "attempt 3"}[recovers]; !strings.Contains(result.Reason, says) {
				t.Errorf("the reason is %q", result.Reason)
			}
		})
	}
}

// spoiled is a client that says what it is told to, and nothing else.
type spoiled struct {
	io.Reader
	heard bytes.Buffer
	fails bool
}

func (s *spoiled) Write(b []byte) (int, error) {
	if s.fails {
		return 0, errors.New("broken pipe")
	}
	return s.heard.Write(b)
}

func (s *spoiled) End() {}

// TestSpoiledLines: whatever a client says, the runner goes on, and tells what it
// was.
func TestSpoiledLines(t *testing.T) {
	const hello = `{"event":"hello","name":"spoiled","auth":["none"],"layouts":[2]}` + "\n"
	for name, tt := range map[string]struct {
		says  string
		fails bool
		want  string // in the finding
	}{
		"ends at once":             {"", false, "the end of its output"},
		"ends after hello":         {hello, false, "the end of its output"},
		"ends after ready":         {hello + `{"event":"ready"}` + "\n", false, "the end of its output"},
		"no JSON":                  {hello + "Traceback\n", false, `"Traceback"`},
		"an error":                 {hello + `{"event":"error","text":"out of luck"}` + "\n", false, "out of luck"},
		"ready before hello":       {`{"event":"ready"}` + "\n", false, `"ready"`},
		"refuses what is right":    {hello + `{"event":"refused","field":"key"}` + "\n", false, `"refused"`},
		"a decision of nothing":    {hello + `{"event":"ready"}` + "\n" + `{"event":"decided","id":"x"}` + "\n", false, `"x"`},
		"ready twice":              {hello + strings.Repeat(`{"event":"ready"}`+"\n", 2), false, `"ready"`},
		"closes its input":         {hello + `{"event":"ready"}` + "\n", true, "broken pipe"},
		"an endless line":          {hello + strings.Repeat("x", conformance.MaxLine+1), false, "too long"},
		"a line without its end":   {hello + `{"event":"ready"`, false, "no JSON object"},
		"empty lines are no lines": {"\n" + hello + "\n\nx\n", false, `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var result Result
				first := true
				_, err := Run(context.Background(), Config{
					Start: func(context.Context) (Client, error) {
						if first {
							first = false
							return &spoiled{Reader: strings.NewReader(hello)}, nil
						}
						return &spoiled{Reader: strings.NewReader(tt.says), fails: tt.fails}, nil
					},
					Stack: memory(), Match: regexp.MustCompile("^fallback/no-delivery$"), Attempts: 1,
					Done: func(r Result) { result = r },
				})
				if err != nil {
					t.Fatal(err)
				}
				if result.Verdict != Failed || !strings.Contains(result.Findings[0].Got+result.Findings[len(result.Findings)-1].Got, tt.want) {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

// TestNoHello is a client that cannot be talked to at all.
func TestNoHello(t *testing.T) {
	for says, want := range map[string]string{"": "the end of its output", `{"event":"ready"}` + "\n": "before hello", "x\n": "no JSON"} {
		_, err := Run(context.Background(), Config{
			Start: func(context.Context) (Client, error) { return &spoiled{Reader: strings.NewReader(says)}, nil },
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// TestSkips: what a client says that it cannot do is not asked of it.
func TestSkips(t *testing.T) {
	hello := &conformance.Reply{Auth: []string{"none"}, Layouts: []int{2}, Lacks: []string{"steering"}}
	for name, want := range map[string]string{
		"wire/mode-none": "", "wire/mode-aes": "mode aes", "wire/layout-1": "layout 1", "ports/change": "lacks steering", "fallback/timeout": "",
		"dns/joins": "", "delivery/01": "does not have delivery_delay", "policy/delayed-delivery": "does not have delivery_delay",
		"policy/bad-delay-horizon": "does not have delivery_delay", "policy/no-delivery": "",
	} {
		cases, err := allCases()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for i := range cases {
			if cases[i].name == name {
				found = true
				if why := cases[i].fits(hello); want == "" && why != "" || !strings.Contains(why, want) {
					t.Errorf("%s: %q", name, why)
				}
			}
		}
		if !found {
			t.Errorf("there is no case %s", name)
		}
	}
}

// TestCheckCore sees that the play with the core can fail: every output of a trace is
// moved, dropped or doubled.
func TestCheckCore(t *testing.T) {
	traces, err := conformance.Traces()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i := range traces {
		good := &traces[i]
		if err := CheckCore(good); err != nil {
			t.Errorf("%s: %v", good.Name, err)
		}
		for k := range good.Events {
			if !good.Events[k].Output() || i%7 > 0 {
				continue
			}
			tried++
			moved := *good
			moved.Events = append([]conformance.Event{}, good.Events...)
			moved.Events[k].At++
			if CheckCore(&moved) == nil {
				t.Errorf("%s: event %d may come later", good.Name, k)
			}
			dropped := *good
			dropped.Events = append(append([]conformance.Event{}, good.Events[:k]...), good.Events[k+1:]...)
			if CheckCore(&dropped) == nil {
				t.Errorf("%s: event %d may be missing", good.Name, k)
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

func TestWrite(t *testing.T) {
	r := Result{
		Name: "a/b", About: "It does.", Section: "docs/x.md#y", Verdict: Failed, Took: 1500 * time.Millisecond,
		Findings: []Finding{{Rule: "replay", Section: "docs/policy.md#rounds", Want: "one", Got: "none"}},
	}
	var b strings.Builder
	if err := WriteResult(&b, &r); err != nil {
		t.Fatal(err)
	}
	const want = `FAIL         a/b (1.5 s)
    It does.
    docs/policy.md#rounds: replay
        expected one
        came     none
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	if err := WriteJSON(&b, &r); err != nil {
		t.Fatal(err)
	}
	var again Result
	if err := json.Unmarshal([]byte(b.String()), &again); err != nil || again.Findings[0] != r.Findings[0] || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("%s: %+v, %v", b.String(), again, err)
	}
	b.Reset()
	if err := WriteSummary(&b, &Summary{Client: "x", Passed: 1, Failed: 2, Skipped: 4, Inconclusive: 3}, time.Minute); err != nil || b.String() != "x: 1 passed, 2 failed, 3 inconclusive, 4 skipped in 60 s\n" {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// TestStretch: what is played in real time is stretched enough to be judged there, and
// not beyond what a key allows.
func TestStretch(t *testing.T) {
	traces, err := conformance.Traces()
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for i := range traces {
		tr := &traces[i]
		scale, ok := stretch(tr)
		if !ok {
			continue
		}
		played++
		numbers := tr.Policy
		numbers.Unit *= scale
		c, err := conformance.NewPolicyCase(tr.Name, numbers)
		if err != nil || c.DedupTTL > maxDedupTTL || c.DedupTTL < 200 || tr.Real && scale != 1 {
			t.Errorf("%s: stretched by %d to %d ms, %v", tr.Name, scale, c.DedupTTL, err)
		}
		if tr.Margin*scale < int64(uncertain) {
			t.Errorf("%s: a margin of %v", tr.Name, time.Duration(tr.Margin*scale))
		}
	}
	if played < 120 || played == len(traces) {
		t.Errorf("%d of %d traces are played in real time", played, len(traces))
	}
}
