package simreport

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/outline.txt")

func small(change func(*sim.Scenario)) *sim.Scenario {
	s := &sim.Scenario{
		Name: "small", Purpose: "A small one.", Length: 2 * time.Second, Policy: policy.Default(),
		Buckets: []sim.Bucket{{Name: "shop", Limit: 50, Window: time.Second}},
		Servers: []sim.Server{{Name: "A", Age: time.Hour}, {Name: "B", Age: time.Minute}},
		Clients: []sim.Clients{{
			Name: "web", Arrivals: sim.Arrivals{Kind: sim.ArriveConstant, Every: 10 * time.Millisecond},
			Mix: []sim.Choice{{Take: []sim.Take{{Bucket: "shop", Tokens: 1}}}},
		}},
		Links:  []sim.Link{{From: "*", To: "*", Both: true, Delay: sim.Uniform(time.Millisecond, 9*time.Millisecond), Loss: 100_000}},
		Faults: []sim.Fault{{Kind: sim.FaultPause, At: 500 * time.Millisecond, For: 400 * time.Millisecond, Server: "A"}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// written is the page of scenarios under policies.
func written(t *testing.T, seeds int, policies []string, scenarios ...*sim.Scenario) []byte {
	t.Helper()
	named, err := simcompare.ParseNamed(policies)
	if err != nil {
		t.Fatal(err)
	}
	return writtenOf(t, seeds, named, scenarios...)
}

func writtenOf(t *testing.T, seeds int, named []simcompare.Named, scenarios ...*sim.Scenario) []byte {
	t.Helper()
	plan := &simcompare.Plan{Scenarios: scenarios, Policies: named, Seed: 1, Seeds: seeds}
	all, err := plan.Play(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{Command: "weir sim compare small", Version: "weir 1.2.3"}
	for i := range all {
		p.Parts = append(p.Parts, Part{&all[i], "purpose: " + scenarios[i].Purpose})
	}
	var once, again bytes.Buffer
	if err := Write(&once, p); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, p); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), again.Bytes()) {
		t.Error("a page written twice is not the same")
	}
	return once.Bytes()
}

// parsed parses a page and holds what is true of every one: nothing that loads or runs anything,
// IDs of which each is there once, and drawings that stay in their frames.
func parsed(t *testing.T, doc []byte) *html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"NaN", "Inf", "ZgotmplZ", "url(", "@import", "%!"} {
		if bytes.Contains(doc, []byte(word)) {
			t.Errorf("the page has %q", word)
		}
	}
	ids := make(map[string]bool)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "link", "img", "iframe", "object", "embed", "base", "form", "foreignObject", "use", "image":
			t.Errorf("the page has a <%s>", n.Data)
		case "figure":
			if len(elements(n, "svg")) == 0 && len(elements(n, "p")) == 0 {
				t.Errorf("a figure with nothing in it: %s", textOf(n))
			}
		case "svg":
			inFrame(t, n)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style" || a.Key == "href" && !strings.HasPrefix(a.Val, "#scenario-") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
			if a.Key == "id" {
				if ids[a.Val] {
					t.Errorf("two of the ID %s", a.Val)
				}
				ids[a.Val] = true
			}
		}
	}
	return root
}

// inFrame holds that paths and boxes are inside of their SVG.
func inFrame(t *testing.T, svg *html.Node) {
	t.Helper()
	var wide, high float64
	if _, err := fmt.Sscanf(attr(svg, "viewBox"), "0 0 %g %g", &wide, &high); err != nil {
		t.Errorf("viewBox %q: %v", attr(svg, "viewBox"), err)
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Errorf("position %q", text)
		}
		return v
	}
	for _, p := range elements(svg, "path") {
		for i, text := range strings.FieldsFunc(attr(p, "d"), func(r rune) bool { return strings.ContainsRune("MLHV ", r) }) {
			if v := number(text); v < 0 || i < 2 && v > max(wide, high) || v > wide && v > high {
				t.Errorf("path %q in %v by %v", attr(p, "d"), wide, high)
				break
			}
		}
	}
	for _, r := range elements(svg, "rect") {
		x, y, w, h := number(attr(r, "x")), number(attr(r, "y")), number(attr(r, "width")), number(attr(r, "height"))
		if x < 0 || y < 0 || w < 0 || h < 0 || x+w > wide+0.1 || y+h > high+0.1 {
			t.Errorf("a box at %v, %v of %v by %v in %v by %v", x, y, w, h, wide, high)
		}
	}
}

func elements(n *html.Node, name string) []*html.Node {
	var all []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			all = append(all, d)
		}
	}
	return all
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if strings.EqualFold(a.Key, key) {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// outline is what of a page a reader sees: its words, and of drawings how much there is.
func outline(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "title", "h1", "h2", "h3", "p", "pre", "li", "tr", "summary":
			if n.Parent.Data != "svg" && n.Parent.Data != "path" && n.Parent.Data != "rect" {
				fmt.Fprintf(&b, "%s: %s\n", n.Data, textOf(n))
			}
		case "svg":
			if attr(n, "role") != "img" {
				continue
			}
			var texts []string
			for _, t := range elements(n, "text") {
				texts = append(texts, textOf(t))
			}
			fmt.Fprintf(&b, "svg: %d paths, %d boxes, %s\n", len(elements(n, "path")), len(elements(n, "rect")), strings.Join(texts, " | "))
		}
	}
	return b.String()
}

// TestOutline compares the outline of a page with that in testdata; -rewrite writes it.
func TestOutline(t *testing.T) {
	policies := []string{"default", "fastest-valid", "scenario"}
	got := outline(parsed(t, written(t, 3, policies, small(nil), small(func(s *sim.Scenario) {
		s.Name, s.Policy, s.Links, s.Faults = "well", policy.StrictOldest(), []sim.Link{{From: "*", To: "*", Both: true, Delay: sim.Constant(time.Millisecond)}}, nil
	}))))
	const file = "testdata/outline.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the outline is not that of %s:\n%s", file, got)
	}
}

// TestHostileNames holds that whatever a scenario says is text in the page.
func TestHostileNames(t *testing.T) {
	const hostile = `</title></pre></style></svg><script>alert("1")</script><b onload='x'>&amp;{{.}}`
	doc := writtenOf(t, 1, []simcompare.Named{{Name: hostile, Policy: policy.Default()}}, small(func(s *sim.Scenario) {
		s.Name, s.Purpose = hostile, hostile
	}))
	root := parsed(t, doc)
	for _, name := range []string{"h1", "h2", "title"} {
		if got := textOf(elements(root, name)[0]); !strings.HasPrefix(got, hostile) {
			t.Errorf("<%s> has the text %q", name, got)
		}
	}
	if n := len(elements(root, "b")); n != 2 { // the number of the one fault, below two charts
		t.Errorf("%d elements <b>", n)
	}
	found := 0
	for _, n := range append(elements(root, "th"), elements(root, "li")...) {
		if textOf(n) == hostile {
			found++
		}
	}
	if found < 5 {
		t.Errorf("the policy's name is there %d times", found)
	}
}

// TestOdd holds that what has nothing to draw, or very much, is a page all the same.
func TestOdd(t *testing.T) {
	dead := func(s *sim.Scenario) {
		s.Faults = []sim.Fault{{Kind: sim.FaultKill, Server: "A"}, {Kind: sim.FaultKill, Server: "B"}}
		s.DNS.Leave = -1
	}
	text := textOf(parsed(t, written(t, 2, []string{"default"}, small(dead))))
	for _, want := range []string{"No request was decided.", "No request was executed by two servers.", "1 kill A, from 0s on", "2 kill B"} {
		if !strings.Contains(text, want) {
			t.Errorf("with all servers dead there is no %q", want)
		}
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("a-policy-%d-with-quite-a-long-name=unit=%dms replays=%d", i, 1+i, i%2))
	}
	crowd := small(func(s *sim.Scenario) {
		s.Length = 300 * time.Millisecond
		s.Faults = nil
		for range 30 {
			s.Faults = append(s.Faults, sim.Fault{Kind: sim.FaultForget, At: 299 * time.Millisecond, Server: "A"})
		}
	})
	root := parsed(t, written(t, 1, many, crowd))
	looks := make(map[string]bool)
	for _, p := range elements(elements(root, "figure")[0], "path") {
		if class := attr(p, "class"); strings.HasPrefix(class, "line ") {
			looks[class] = true
		}
	}
	if len(looks) < 40 {
		t.Errorf("40 policies have %d looks", len(looks))
	}
}

// TestOverU holds when wrong decisions are a line over U: when nothing else differs.
func TestOverU(t *testing.T) {
	for _, c := range []struct {
		policies []string
		line     bool
	}{
		{[]string{"unit=40ms", "unit=5ms", "unit=20ms"}, true},
		{[]string{"unit=5ms", "a=unit=5ms"}, false},
		{[]string{"unit=5ms", "strict-oldest unit=20ms"}, false},
		{[]string{"unit=5ms"}, false},
	} {
		root := parsed(t, written(t, 3, c.policies, small(nil)))
		figure := elements(root, "figure")[2]
		if got := strings.HasPrefix(textOf(figure), "Wrong decisions by U "); got != c.line {
			t.Errorf("%q: %s", c.policies, textOf(figure))
		}
		if c.line && !strings.Contains(textOf(figure), " 5 20 40 U, the policy's unit (ms)") {
			t.Errorf("the axis of U: %s", textOf(figure))
		}
	}
}
