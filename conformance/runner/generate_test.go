package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/policy"
)

// `go test ./conformance/runner -run TestData -rewrite` writes conformance/data anew.
var rewrite = flag.Bool("rewrite", false, "write conformance/data from its sources")

const root = ".." // conformance

// sections tells where the rules are written that a file's traces are about.
var sections = map[string]string{
	"answers": "docs/protocol.md#answers", "blocks": "docs/protocol.md#answers",
	"discovery": "docs/protocol.md#discovery", "steering": "docs/architecture.md#steering",
	"dns": "docs/protocol.md#discovery", "identity": "docs/protocol.md#answers", "ports": "docs/architecture.md#steering",
	"wire": "docs/protocol.md#authentication", "reports": "docs/protocol.md#pdu",
}

// TestDataTraces holds data/traces to their sources: the inputs are those, and the
// outputs what the core makes of them; where there is a transcript, it says the same.
func TestDataTraces(t *testing.T) {
	written := map[string]bool{}
	for _, dir := range []string{filepath.Join(root, "..", "core", "testdata", "traces"), filepath.Join(root, "source")} {
		for _, path := range sourceFiles(t, dir) {
			group := strings.TrimSuffix(filepath.Base(path), ".txt")
			section := sections[group]
			if section == "" {
				section = "docs/policy.md#rounds"
			}
			core := dir != filepath.Join(root, "source")
			var traces []conformance.Trace
			for _, s := range readSources(t, path, group, section) {
				events, err := PlayCore(&s.trace)
				if err != nil {
					t.Fatalf("%s: %v", s.trace.Name, err)
				}
				s.trace.Events = events
				s.trace.Margin = s.trace.FindMargin()
				if core {
					compareTranscript(t, &s)
				}
				traces = append(traces, s.trace)
			}
			if len(traces) == 0 {
				continue
			}
			name := filepath.Join("traces", group+".json")
			if written[filepath.Base(name)] {
				t.Errorf("two sources are called %s", group)
			}
			written[filepath.Base(name)] = true
			compareData(t, name, formatTraces(t, traces))
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "data", "traces"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !written[e.Name()] {
			t.Errorf("data/traces/%s has no source", e.Name())
		}
	}
}

// compareTranscript holds a trace to what the core's transcript says was sent,
// decided and given up, and what became of answers.
func compareTranscript(t *testing.T, s *source) {
	t.Helper()
	var want, got []string
	for _, line := range s.output {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		switch words[1] {
		case "send", "complete-deliver":
			want = append(want, strings.Join([]string{words[0], words[1], words[2], words[4]}, " "))
		case "replay":
			want = append(want, strings.Join([]string{words[0], "replay", words[2], words[6]}, " "))
		case "decide":
			by := strings.TrimSuffix(words[5], ",")
			want = append(want, strings.Join([]string{words[0], "decide", words[2], words[3], by}, " "))
		case "abandon":
			want = append(want, strings.Join(words[:3], " "))
		case "response":
			verdict := line[strings.LastIndex(line, ": ")+2:]
			if strings.HasPrefix(verdict, "invalid") {
				verdict = "ignored"
			}
			want = append(want, strings.Join([]string{words[0], "response", words[2], words[3], verdict}, " "))
		}
	}
	for _, e := range s.trace.Events {
		at := time.Duration(e.At).String()
		switch {
		case e.Send != nil && e.Send.Why != "report":
			verb := map[string]string{"first": "send", "delivery": "complete-deliver", "replay": "replay"}[e.Send.Why]
			got = append(got, strings.Join([]string{at, verb, e.Send.Request, e.Send.To}, " "))
		case e.Decide != nil:
			outcome := map[bool]string{true: "granted", false: "rejected"}[e.Decide.Granted]
			by := e.Decide.By
			if by == "" {
				by = "nobody"
			}
			got = append(got, strings.Join([]string{at, "decide", e.Decide.Request, outcome, by}, " "))
		case e.Fail != nil && e.Fail.Reason == "timeout":
			got = append(got, strings.Join([]string{at, "abandon", e.Fail.Request}, " "))
		case e.Answer != nil && e.Answer.Damage != "noise":
			got = append(got, strings.Join([]string{at, "response", e.Answer.From, e.Answer.Of, e.Answer.Counts}, " "))
		}
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], ":", "")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: the transcript is\n  %s\nand the trace\n  %s", s.trace.Name, strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	}
}

// TestDataPolicies holds data/policies.json to its source.
func TestDataPolicies(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "source", "policies"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []conformance.PolicyCase
	for _, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		name, text, ok := strings.Cut(line, "=>")
		if !ok {
			continue
		}
		n, err := parseNumbers(strings.Fields(text))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		c, err := conformance.NewPolicyCase(strings.TrimSpace(name), n)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	compareData(t, "policies.json", formatLines(t, cases))
}

// parseNumbers reads a policy's text form without judging it.
func parseNumbers(words []string) (conformance.Numbers, error) {
	p := policy.Default()
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		var ok bool
		if p, ok = policy.Preset(words[0]); !ok {
			return conformance.Numbers{}, fmt.Errorf("no preset %q", words[0])
		}
		words = words[1:]
	}
	n := conformance.NumbersOf(p)
	for _, word := range words {
		field, value, _ := strings.Cut(word, "=")
		var err error
		switch field {
		case "unit":
			var d time.Duration
			d, err = time.ParseDuration(value)
			n.Unit = int64(d)
		case "replays":
			_, err = fmt.Sscan(value, &n.Replays)
		case "gap":
			n.Gap = value
		case "preference":
			n.Preference = value
		case "final":
			_, err = fmt.Sscan(value, &n.Final)
		case "final-preference":
			_, err = fmt.Sscan(value, &n.FinalPreference)
		case "completion-delivery":
			n.CompletionDelivery = value == "on"
		case "delivery-delay":
			_, err = fmt.Sscan(value, &n.DeliveryDelay)
		default:
			err = fmt.Errorf("no field %q", field)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestDataKeys holds data/keys.json to the golden keys, which other implementations made.
func TestDataKeys(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "..", "apikey", "testdata", "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Keys []struct {
			Case, Text, Auth, Secret string
			Legacy                   bool
			ID                       uint64
			Quotas                   map[string]uint32
		}
		Refused []struct{ Case, Text, Error string }
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	var cases []conformance.KeyCase
	for _, k := range golden.Keys {
		k.Quotas["latency_buffer_size"] = k.Quotas["latency_buffer"]
		delete(k.Quotas, "latency_buffer")
		cases = append(cases, conformance.KeyCase{Name: k.Case, Key: k.Text, Legacy: k.Legacy, Fields: &conformance.KeyFields{
			Auth: k.Auth, ID: strconv.FormatUint(k.ID, 10), Secret: k.Secret, Quotas: k.Quotas,
		}})
	}
	for _, k := range golden.Refused {
		cases = append(cases, conformance.KeyCase{Name: k.Case, Key: k.Text, Fault: k.Error})
	}
	compareData(t, "keys.json", formatLines(t, cases))
}

// vectorFiles are the golden vectors that stand elsewhere in the repository.
var vectorFiles = []string{
	"apikey/testdata/keys.json", "ident/testdata/ids.json", "testdata/vectors/requests.json",
	"testdata/vectors/reports.json", "testdata/vectors/responses.json", "testdata/vectors/traps.json",
}

// TestDataVectors holds data/vectors.json, the index of the golden vectors, to them.
func TestDataVectors(t *testing.T) {
	type entry struct {
		Path   string `json:"path"`
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	var entries []entry
	for _, path := range vectorFiles {
		b, err := os.ReadFile(filepath.Join(root, "..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		entries = append(entries, entry{path, len(b), hex.EncodeToString(sum[:])})
	}
	compareData(t, "vectors.json", formatLines(t, entries))
}

func compareData(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(root, "data", name)
	if *rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its source makes: run go test ./conformance/runner -run TestData -rewrite, and read the difference", path)
	}
}

// formatLines writes an array with one entry a line.
func formatLines[T any](t *testing.T, entries []T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("[\n")
	for i := range entries {
		line, err := json.Marshal(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("  ")
		b.Write(line)
		if i < len(entries)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// formatTraces writes traces with one event a line.
func formatTraces(t *testing.T, traces []conformance.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("[\n")
	for i := range traces {
		head := traces[i]
		head.Events = nil
		if head.Members == nil { // a list is none without an entry, and never null
			head.Members = []string{}
		}
		if head.Servers == nil {
			head.Servers = []conformance.Server{}
		}
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(bytes.TrimSuffix(text, []byte("null}")))
		b.Write(bytes.ReplaceAll(formatLines(t, traces[i].Events), []byte("\n]\n"), []byte("\n]}")))
		if i < len(traces)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes()
}
