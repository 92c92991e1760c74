package scenario

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/sim"
)

// pageFile is the documentation of the schema.
const pageFile = "../../docs/scenarios.md"

var rewrite = flag.Bool("rewrite", false, "write the goldens, and the table of the library in docs/scenarios.md")

// whole is a scenario that has one of everything that a field of another could name.
const whole = `
length: 20s
buckets: {shop: 100/s, user: {limit: 10/s, count: 100}}
trackers: {db: }
services: {db: {tracker: db}}
servers: {A: , B: , C: , D: }
clients: {web: {count: 2, poisson: 5/s, ask: shop}}
`

// beside are the files beside it.
func beside(name string) ([]byte, error) {
	return fstest.MapFS{
		"rtt.txt":      {Data: []byte("1ms 20\n2ms # some\n\n")},
		"rtt.hlog":     {Data: recorded()},
		"arrivals.txt": {Data: []byte("1ms\n1ms\n4ms 2\n")},
	}.ReadFile(name)
}

// mapping is a mapping of the schema as the page has it.
type mapping struct {
	heading string
	fields  []field
	in      string            // where an example stands in a file: in place of the dots
	with    string            // what has to be beside it
	instead map[string]string // or, with the example of some fields, this
}

func mappings() []mapping {
	d := &decoder{marks: map[string]mark{}}
	var f sim.Fault
	ask := map[string]string{}
	for _, kind := range []string{"constant", "poisson", "burst", "closed", "trace"} {
		ask[kind] = "ask: shop"
	}
	fault := func(heading, name string, fields func(at string, f *sim.Fault) []field, with string, instead map[string]string) mapping {
		return mapping{heading, fields("", &f), "faults: [{at: 1s, " + name + ": {…}}]", with, instead}
	}
	return []mapping{
		{"File", d.fileFields(&sim.Scenario{}), "{…}", "", nil},
		{"Fail-fast", d.failFastFields(&sim.Scenario{}), "fail_fast: {…}", "", nil},
		{"Refresh", d.refreshFields(&sim.Scenario{}), "refresh: {…}", "", nil},
		{"Quotas", d.quotaFields(&sim.Scenario{}), "quotas: {…}", "", nil},
		{"Bucket", d.bucketFields("", &sim.Bucket{}), "buckets: {x: {…}}", "limit: 100/s", map[string]string{"limit": "", "window": "limit: 100"}},
		{"Tracker", d.trackerFields("", &sim.Tracker{}), "trackers: {db: {…}}", "", nil},
		{"Server", d.serverFields("", &sim.Server{}), "servers: {B: {…}}", "", nil},
		{"Clients", d.clientFields("", &sim.Clients{}), "clients: {x: {…}}", "constant: 1/s, ask: shop", ask},
		{"Burst", d.burstFields("", &sim.Arrivals{}), "clients: {x: {ask: shop, burst: {…}}}", "size: 2, rate: 1/s", nil},
		{"Closed", d.closedFields("", &sim.Arrivals{}), "clients: {x: {ask: shop, closed: {…}}}", "callers: 2, think: 1ms", nil},
		{"Request", d.choiceFields("", &sim.Choice{}), "clients: {x: {constant: 1/s, ask: {…}}}", "take: shop", nil},
		{"Link", d.linkFields("", &sim.Link{}), "network: {…}", "", nil},
		{"Burst loss", d.burstLossFields("", &sim.Burst{}), "network: {burst_loss: {…}}", "enter: 1%, leave: 1%, loss: 1%", nil},
		{"Reorder", d.reorderFields("", &sim.Link{}), "network: {reorder: {…}}", "chance: 1%, late: 1ms", nil},
		{"DNS", d.dnsFields(&sim.DNS{}), "dns: {…}", "", nil},
		{"Service", d.serviceFields("", &sim.Service{}), "services: {db: {…}}", "", nil},
		{"Fault", d.faultFields("", &sim.Fault{}), "faults: [{…}]", "", map[string]string{"at": "kill: A", "for": "kill: A, at: 1s"}},
		fault("Partition", "partition", func(at string, f *sim.Fault) []field { return d.wayFields(at, way{&f.From, &f.To, &f.Both}) }, "", nil),
		fault("Loss", "loss", d.lossFields, "chance: 1%", nil),
		fault("Delay", "delay", d.delayFields, "by: 1ms", nil),
		fault("Slow", "slow", d.slowFields, "server: A, by: 1ms", nil),
		fault("Clock", "clock", d.clockFields, "server: A, by: 1s", map[string]string{"clients": "by: 1s"}),
		fault("Work", "work", d.workFields, "service: db, by: 1ms", nil),
	}
}

// documented is a field as the page tells it.
type documented struct{ name, example string }

// readPage returns the tables of fields by their headings, in order, and the YAML blocks.
func readPage(t *testing.T) (headings []string, tables map[string][]documented, blocks []string) {
	t.Helper()
	data, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\|.*\\| `([^`]+)` \\|[^|]*\\|$")
	tables = map[string][]documented{}
	heading, inTable := "", false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		if line == "| field | value | default | example | |" {
			headings, inTable = append(headings, heading), true
			continue
		}
		inTable = inTable && strings.HasPrefix(line, "|")
		if !inTable || strings.HasPrefix(line, "|---") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the row %s does not have a field, its value, its default and an example", line)
			continue
		}
		tables[heading] = append(tables[heading], documented{m[1], m[2]})
	}
	for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	return headings, tables, blocks
}

// TestPageHasEveryField holds the decoder and docs/scenarios.md together, both ways.
func TestPageHasEveryField(t *testing.T) {
	headings, tables, _ := readPage(t)
	var known []string
	for _, m := range mappings() {
		known = append(known, m.heading)
		var decoded, told []string
		for _, f := range m.fields {
			decoded = append(decoded, f.name)
		}
		for _, f := range tables[m.heading] {
			told = append(told, f.name)
		}
		slices.Sort(decoded)
		slices.Sort(told)
		if !slices.Equal(decoded, told) {
			t.Errorf("%s: the decoder has %v, the page %v", m.heading, decoded, told)
		}
	}
	slices.Sort(known)
	slices.Sort(headings)
	if !slices.Equal(known, headings) {
		t.Errorf("the decoder has the mappings %v, the page %v", known, headings)
	}
}

// TestPageExamples takes each example on the page for what it is said to be.
func TestPageExamples(t *testing.T) {
	_, tables, blocks := readPage(t)
	for _, m := range mappings() {
		for _, f := range tables[m.heading] {
			with, ok := m.instead[f.name]
			if !ok {
				with = without(m.with, f.name)
			}
			if with != "" {
				with += ", "
			}
			text := strings.Replace(m.in, "…", with+f.example, 1)
			if name, _, _ := strings.Cut(f.example, ":"); name != f.name {
				t.Errorf("%s: the example of %s is of %s", m.heading, f.name, name)
			}
			if err := parseOver(text); err != nil {
				t.Errorf("%s: %s: %v", m.heading, text, err)
			}
		}
	}
	for i, block := range blocks {
		if _, err := Parse([]byte(block), beside); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
	if len(blocks) < 2 {
		t.Errorf("there are %d blocks", len(blocks))
	}
}

// parseOver parses what is laid over the whole scenario.
func parseOver(text string) error {
	base := new(yaml.Node)
	over := new(yaml.Node)
	if err := yaml.Load([]byte(whole), base); err != nil {
		return err
	}
	if err := yaml.Load([]byte(text), over); err != nil {
		return err
	}
	root, variants, err := split(merge(base.Content[0], over.Content[0], 0))
	if err != nil {
		return err
	}
	for _, v := range append(variants, variant{root: root}) {
		if _, err := decode(v.root, beside); err != nil {
			return err
		}
	}
	return nil
}

// without takes a field out of "a: 1, b: 2".
func without(fields, name string) string {
	parts := strings.Split(fields, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, name+":") })
	return strings.Join(parts, ", ")
}

// TestPageHasTheLibrary holds the page's table of the library and the files together.
func TestPageHasTheLibrary(t *testing.T) {
	data, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	_, got, ok := strings.Cut(string(data), "\n## Library\n")
	if !ok {
		t.Fatal("the page has no section Library")
	}
	rows := "| scenario | what it shows | variants |\n|---|---|---|\n"
	for _, name := range List() {
		f, err := EmbeddedFile(name)
		if err != nil {
			t.Fatal(err)
		}
		variants := make([]string, len(f.Variants))
		for i, v := range f.Variants {
			variants[i] = "`" + strings.TrimPrefix(v.Name, name+"/") + "`"
		}
		rows += "| [`" + name + "`](../sim/scenarios/" + name + ".yaml) | " + f.Scenario.Purpose + " | " + strings.Join(variants, ", ") + " |\n"
	}
	if *rewrite && !strings.Contains(got, rows) {
		head, _, _ := strings.Cut(string(data), "| scenario | what it shows | variants |\n")
		if err := os.WriteFile(pageFile, []byte(head+rows), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.HasSuffix(got, rows) {
		t.Errorf("docs/scenarios.md does not end with the table of the library; go test ./sim/scenario -rewrite writes it:\n%s", rows)
	}
}
