package conformance

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/storm"
)

// TestTraces reads what is compiled in: every name is there once, and every margin is
// the one that the events have.
func TestTraces(t *testing.T) {
	traces, err := Traces()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range traces {
		tr := &traces[i]
		if names[tr.Name] {
			t.Errorf("%s is there twice", tr.Name)
		}
		names[tr.Name] = true
		if m := tr.FindMargin(); m != tr.Margin {
			t.Errorf("%s: the margin is %d, not %d", tr.Name, m, tr.Margin)
		}
		if tr.About == "" || !strings.HasPrefix(tr.Section, "docs/") {
			t.Errorf("%s: about %q, section %q", tr.Name, tr.About, tr.Section)
		}
	}
	if len(traces) < 150 {
		t.Errorf("%d traces", len(traces))
	}
}

// TestPolicies reads what is compiled in, and works every case out anew.
func TestPolicies(t *testing.T) {
	cases, err := Policies()
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]int{}
	for i := range cases {
		c, err := NewPolicyCase(cases[i].Name, cases[i].Policy)
		if err != nil || !reflect.DeepEqual(c, cases[i]) {
			t.Errorf("%s: %+v, %v", cases[i].Name, c, err)
		}
		faults[c.Fault]++
	}
	for _, field := range []string{"", "unit", "replays", "gap", "preference", "final", "final-preference", "delivery-delay", "horizon"} {
		if faults[field] == 0 {
			t.Errorf("no case has its fault in %q", field)
		}
	}
}

func TestFindMargin(t *testing.T) {
	submit := Event{Submit: &Submit{ID: "r"}}
	answer := func(at int64) Event { return Event{At: at, Answer: &Answer{From: "A", Of: "r"}} }
	for name, tt := range map[string]struct {
		events []Event
		want   int64
	}{
		"rounds alone":            {[]Event{submit}, 20e6},
		"an answer":               {[]Event{submit, answer(3e6)}, 3e6},
		"before a deadline":       {[]Event{submit, answer(19e6)}, 1e6},
		"at a deadline":           {[]Event{submit, answer(20e6)}, 0},
		"two answers":             {[]Event{submit, answer(10e6), answer(12e6)}, 2e6},
		"two at once":             {[]Event{submit, answer(10e6), answer(10e6)}, 0},
		"another request's":       {[]Event{submit, {At: 1e6, Submit: &Submit{ID: "q"}}, answer(10e6)}, 10e6},
		"members told by hand":    {[]Event{submit, {At: 5e6, Members: &Members{}}}, 0},
		"counts from its submit":  {[]Event{{At: 7e6, Submit: &Submit{ID: "r"}}, answer(11e6)}, 4e6},
		"late, behind the end":    {[]Event{submit, answer(65e6)}, 5e6},
		"in the final interval":   {[]Event{submit, answer(41e6)}, 1e6},
		"on the way to a horizon": {[]Event{submit, answer(59_999_999)}, 1},
		"sent, without a delay":   {[]Event{submit, {At: 3e6, Send: &Send{Request: "r", Why: "replay"}}, answer(10e6)}, 10e6},
	} {
		tr := Trace{Policy: Numbers{
			Unit: 20e6, Replays: 1, Gap: "fixed:1", Preference: "list:1,0", Final: 1, CompletionDelivery: true,
		}, Events: tt.events}
		if got := tr.FindMargin(); got != tt.want {
			t.Errorf("%s: %d, not %d", name, got, tt.want)
		}
	}
}

// TestFindMarginWithDelay counts the end of a delay after the last send, too.
func TestFindMarginWithDelay(t *testing.T) {
	submit := Event{At: 7e6, Submit: &Submit{ID: "r"}}
	send := func(at int64, why string) Event { return Event{At: at, Send: &Send{Request: "r", Why: why}} }
	answer := func(at int64) Event { return Event{At: at, Answer: &Answer{From: "A", Of: "r"}} }
	first := send(7e6, "first")
	for name, tt := range map[string]struct {
		events []Event
		want   int64
	}{
		"no sends":              {[]Event{submit, answer(26e6)}, 19e6},
		"the delay's end":       {[]Event{submit, first, answer(17e6)}, 10e6},
		"an answer before it":   {[]Event{submit, first, answer(26e6)}, 1e6},
		"an answer at it":       {[]Event{submit, first, answer(27e6)}, 0},
		"a replay later":        {[]Event{submit, first, send(47e6, "replay"), answer(65e6)}, 2e6},
		"and no more the first": {[]Event{submit, first, answer(26e6), send(47e6, "replay")}, 19e6},
		"a delivery is none":    {[]Event{submit, first, send(30e6, "delivery"), answer(49e6)}, 2e6},
		"another request's":     {[]Event{submit, {At: 9e6, Submit: &Submit{ID: "q"}}, {At: 9e6, Send: &Send{Request: "q", Why: "first"}}, answer(26e6)}, 19e6},
	} {
		tr := Trace{Policy: Numbers{
			Unit: 20e6, Replays: 1, Gap: "fixed:2", Preference: "fixed:0", Final: 1, CompletionDelivery: true, DeliveryDelay: 1,
		}, Events: tt.events}
		if got := tr.FindMargin(); got != tt.want {
			t.Errorf("%s: %d, not %d", name, got, tt.want)
		}
	}
}

// TestReadTracesRefuses breaks a good trace in one way each.
func TestReadTracesRefuses(t *testing.T) {
	const good = `[{"name":"n","about":"a","section":"s","auth":"any","layout":2,"margin_ns":1,
		"policy":{"unit_ns":1000000,"replays":0,"gap":"fixed:1","preference":"fixed:1","final":0,"final_preference":0,"completion_delivery":true},
		"servers":[{"name":"A","id":"1"}],"members":["A"],
		"events":[{"at_ns":1,"submit":{"id":"r"}},{"at_ns":2,"answer":{"from":"A","of":"r","counts":"counted"}},{"at_ns":2,"decide":{"request":"r","granted":true,"by":"A"}}]}]`
	if traces, err := ReadTraces([]byte(good)); err != nil || len(traces) != 1 {
		t.Fatal(traces, err)
	}
	for _, tt := range []struct{ old, broken, says string }{
		{`"name":"n"`, `"name":""`, "no name"},
		{`"auth":"any"`, `"auth":"some"`, "auth"},
		{`"layout":2`, `"layout":3`, "layout 3"},
		{`"unit_ns":1000000`, `"unit_ns":0`, "unit"},
		{`"unit_ns":1000000`, `"unit_ns":1000000,"what":1`, "unknown field"},
		{`"completion_delivery":true`, `"completion_delivery":true,"delivery_delay":1`, "delivery-delay"},
		{`"replays":0,"gap":"fixed:1","preference":"fixed:1","final":0,"final_preference":0,"completion_delivery":true`, `"replays":1,"gap":"fixed:1","preference":"fixed:1","final":0,"final_preference":0,"completion_delivery":true,"delivery_delay":1`, "delivery_delay"},
		{`"members":["A"]`, `"members":["B"]`, `no server is called "B"`},
		{`{"at_ns":1,"submit"`, `{"at_ns":3,"submit"`, "before the one above"},
		{`"submit":{"id":"r"}`, `"submit":{"id":"r"},"fail":{"request":"r","reason":""}`, "2 things"},
		{`"submit":{"id":"r"}`, `"submit":{"id":"a b"}`, "no name"},
		{`"from":"A","of":"r"`, `"from":"A","of":"q"`, `called "q"`},
		{`"from":"A"`, `"from":"X"`, `no server is called "X"`},
		{`"counts":"counted"`, `"counts":"counted","damage":"bent"`, `damage "bent"`},
		{`"counts":"counted"`, `"counts":"counted","via":"X"`, `no server is called "X"`},
		{`"counts":"counted"`, `"counts":"counted","layout":3`, "layout 3"},
		{`"by":"A"`, `"by":"X"`, `no server is called "X"`},
		{`}]}]`, `}]}] []`, "follows"},
	} {
		broken := strings.Replace(good, tt.old, tt.broken, 1)
		if _, err := ReadTraces([]byte(broken)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.broken, err)
		}
	}
}

func TestReadPoliciesRefuses(t *testing.T) {
	for text, says := range map[string]string{
		`[{"policy":{}}]`:         "no name",
		`[{"name":"n"}]`:          "neither",
		`[{"name":"n","f":1}]`:    "unknown field",
		`[{"name":"n","policy":`:  "no JSON",
		`[{"name":"n"}] trailing`: "follows",
		`[{"name":"n","fault":"gap","policy":{"delivery_delay":1}}]`: "needs",
		`[{"name":"n","fault":"gap","horizon_ns":1}]`:                "a fault and a horizon",
	} {
		if _, err := ReadPolicies([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseLines(t *testing.T) {
	for text, says := range map[string]string{
		`{"event":"hello"} x`:          "follows",
		`{"event":"decided"}`:          "no id",
		`{"event":"guessed","id":"r"}`: "unknown event",
		`{"event":7}`:                  "no JSON object",
		`[]`:                           "no JSON object",
		`{"event":"` + strings.Repeat("x", MaxLine):    "longer than",
		`{"event":"decided","id":"r","resources":[-1]`: "no JSON object",
	} {
		if r, err := ParseReply([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %+v, %v", text, r, err)
		}
	}
	for text, says := range map[string]string{
		`{"cmd":"configure"}`: "no policy",
		`{"cmd":"submit"}`:    "no id",
		`{"cmd":"report"}`:    "no id",
		`{"cmd":"stop"}`:      "unknown command",
	} {
		if c, err := ParseCommand([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	r, err := ParseReply([]byte(`{"event":"decided","id":"r","granted":true,"server":"5","guards":[{"latency_ms":7,"passed":true}],"later":"fields"}`))
	if err != nil || !r.Granted || r.Server != "5" || !slices.Equal(r.Guards, []GuardResult{{7, true}}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// linesTarget holds the parsers of lines to what they take: it is written as one
// line, and read again as the same.
func linesTarget() *storm.Target {
	target := storm.New("FuzzLines", checkLine)
	for _, line := range []string{
		`{"cmd":"configure","key":"rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys","domain":"c-7.example.test","nameserver":"127.0.0.1:53","policy":{"unit_ns":20000000,"replays":1,"gap":"fixed:1","preference":"list:1,0","final":1,"final_preference":0,"completion_delivery":true},"layout":2}`,
		`{"cmd":"submit","id":"r","label":"r","guards":[{"tracker":"inventory","ttl_ms":10000,"max_samples":100,"buffer_size":32,"min_samples":5,"threshold_ms":100}],"resources":[{"bucket":"caf\u00e9\u0000","window_ms":1000,"limit":100,"tokens":1}]}`,
		`{"cmd":"report","id":"p","observations":[{"tracker":"inventory","ttl_ms":10000,"max_samples":100,"min_samples":5,"latency_ms":7}]}`,
		`{"cmd":"quit"}`,
		`{"event":"hello","name":"x","auth":["aes","none"],"layouts":[1,2],"lacks":["steering"]}`,
		`{"event":"ready"}`, `{"event":"refused","field":"key","text":"its checksum is wrong"}`,
		`{"event":"decided","id":"r","granted":true,"server":"724775731200","guards":[{"latency_ms":7,"passed":true}],"resources":[{"deficit":65535}]}`,
		`{"event":"failed","id":"r","reason":"timeout","text":"\ud800"}`, `{"event":"reported","id":"p"}`, `{"event":"error"} {}`, `[]`, ``,
	} {
		target.Add([]byte(line))
	}
	return target
}

func FuzzLines(f *testing.F)      { linesTarget().Fuzz(f) }
func TestStormLines(t *testing.T) { linesTarget().Storm(t) }

// tracesTarget holds the reader of traces to what it takes: it is written and read
// again as the same.
func tracesTarget(tb testing.TB) *storm.Target {
	tb.Helper()
	target := storm.New("FuzzReadTraces", func(t testing.TB, b []byte) {
		traces, err := ReadTraces(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(traces)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadTraces(text)
		if err != nil || !sameJSON(t, traces, again) {
			t.Fatalf("%s is read back as %+v, %v", text, again, err)
		}
		for i := range traces {
			if m := traces[i].FindMargin(); m < 0 {
				t.Fatalf("a margin of %d", m)
			}
		}
	})
	traces, err := Traces()
	if err != nil {
		tb.Fatal(err)
	}
	groups := map[string]bool{}
	for i := range traces { // one of each file: they are long
		group, _, _ := strings.Cut(traces[i].Name, "/")
		if groups[group] {
			continue
		}
		groups[group] = true
		b, err := json.Marshal(traces[i : i+1])
		if err != nil {
			tb.Fatal(err)
		}
		target.Add(b)
	}
	return target
}

func FuzzReadTraces(f *testing.F)      { tracesTarget(f).Fuzz(f) }
func TestStormReadTraces(t *testing.T) { tracesTarget(t).Storm(t) }

func checkLine(t testing.TB, line []byte) {
	if r, err := ParseReply(line); err == nil {
		var b strings.Builder
		if err := WriteLine(&b, r); err != nil {
			t.Fatal(err)
		}
		again, err := ParseReply([]byte(strings.TrimSuffix(b.String(), "\n")))
		if err == nil && !sameJSON(t, r, again) {
			t.Fatalf("%+v is read back as %+v", r, again)
		}
		if strings.Count(b.String(), "\n") != 1 {
			t.Fatalf("%q is not one line", b.String())
		}
	}
	if c, err := ParseCommand(line); err == nil {
		var b strings.Builder
		if err := WriteLine(&b, c); err != nil {
			t.Fatal(err)
		}
		again, err := ParseCommand([]byte(strings.TrimSuffix(b.String(), "\n")))
		if err == nil && !sameJSON(t, c, again) {
			t.Fatalf("%+v is read back as %+v", c, again)
		}
	}
}

func sameJSON(t testing.TB, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Equal(x, y)
}
