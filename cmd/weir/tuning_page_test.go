package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/policy"
)

var tuning = flag.Bool("tuning", false, "write the tables of docs/tuning.md, which takes minutes")

const tuningPage = "../../docs/tuning.md"

// TestTuningPage holds that what docs/tuning.md says of the default and of each recommendation is what
// the command that stands there prints: it plays both again with the seeds that confirm, without the
// search. With -tuning it runs the commands and writes what they print.
func TestTuningPage(t *testing.T) {
	if raceDetector {
		t.Skip("a simulation comes to the same under the race detector, only later")
	}
	doc, err := os.ReadFile(tuningPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-tuning -->\n", "<!-- end -->\n"
	var page strings.Builder
	rest := string(doc)
	networks := 0
	for {
		before, after, ok := strings.Cut(rest, begin)
		if !ok {
			break
		}
		table, behind, ok := strings.Cut(after, end)
		if !ok {
			t.Fatalf("%s: a table has no end", tuningPage)
		}
		line := before[strings.LastIndex(before, "```sh\nweir ")+len("```sh\nweir "):]
		line, _, _ = strings.Cut(line, "\n")
		networks++
		if *tuning {
			table = "\n" + tuned(t, line) + "\n"
		} else if networks == 1 || !testing.Short() {
			checkTuned(t, line, table)
		}
		page.WriteString(before + begin + table + end)
		rest = behind
	}
	if networks != 4 {
		t.Errorf("%s has %d networks", tuningPage, networks)
	}
	if *tuning {
		if err := os.WriteFile(tuningPage, []byte(page.String()+rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tuned is what a command prints.
func tuned(t *testing.T, line string) string {
	var out, errs bytes.Buffer
	std := &stdio{out: &out, err: &errs, getenv: func(string) string { return "" }}
	if status := run(t.Context(), tuneWords(line), std); status != exitOK {
		t.Fatalf("weir %s: status %d: %s", line, status, &errs)
	}
	return out.String()
}

// tuneWords splits a line at blanks that are not between apostrophes.
func tuneWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// checkTuned plays the default and the recommendation of a table.
func checkTuned(t *testing.T, line, table string) {
	var c struct {
		Tune tuneCmd `cmd:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(tuneWords(line)); err != nil {
		t.Fatalf("weir %s: %v", line, err)
	}
	_, text, _ := strings.Cut(table, "--policy '")
	text, _, _ = strings.Cut(text, "'")
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatalf("weir %s: %v", line, err)
	}
	plan, scenarios, err := c.Tune.plan()
	if err != nil {
		t.Fatal(err)
	}
	base, row, saves, err := simtune.Judge(t.Context(), plan, scenarios.Play(0, nil), p)
	if err != nil {
		t.Fatal(err)
	}
	base.Name, row.Name = "default", "recommended"
	// Who is on the front is a matter of all rows.
	plain := strings.ReplaceAll(table, " + |", " |")
	r := &simtune.Result{Rows: []simtune.Row{base, row}}
	for i := range r.Rows {
		if want := "| " + strings.Join(r.Cells(i), " | ") + " |\n"; !strings.Contains(plain, want) {
			t.Errorf("weir %s: %s is\n%sin the page; to write it anew, see the mark there. It has\n%s", line, r.Rows[i].Name, want, table)
		}
	}
	if p == policy.Default() || saves.Mean+saves.Half >= 0 || row.Breaches != nil {
		t.Errorf("weir %s: %s does not beat the default: the logarithm of its cost is %v ± %v, beyond guards %v", line, text, saves.Mean, saves.Half, row.Breaches)
	}
}
