package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of the documents that this command prints")

// printed are the documents with tables that commands print, each behind its command and between
// marks.
var printed = []string{"../../docs/first-comparison.md", "../../docs/overload.md", "../../docs/defaults.md"}

const (
	beginTable = "<!-- begin: go test ./cmd/weir -run TestTables -rewrite -->\n"
	endTable   = "<!-- end -->\n"
)

// TestTables holds that the tables of documents are what the commands that stand there print.
func TestTables(t *testing.T) {
	if raceDetector {
		t.Skip("a simulation prints the same under the race detector, only later")
	}
	for _, page := range printed {
		t.Run(page, func(t *testing.T) {
			old, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			now, err := withTables(t, string(old))
			if err != nil {
				t.Fatal(err)
			}
			if now == string(old) {
				return
			}
			if !*rewrite {
				t.Fatalf("%s has other tables than its commands print; the mark there says how to write them. It should be\n%s", page, now)
			}
			if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// withTables returns a document with what its commands print now.
func withTables(t *testing.T, doc string) (string, error) {
	t.Helper()
	var out strings.Builder
	tables := 0
	for {
		before, rest, ok := strings.Cut(doc, beginTable)
		if !ok {
			break
		}
		_, after, ok := strings.Cut(rest, endTable)
		at := strings.LastIndex(before, "```sh\nweir ")
		if !ok || at < 0 {
			return "", errors.New("a table has no end, or no command")
		}
		line, _, _ := strings.Cut(before[at+len("```sh\nweir "):], "\n```")
		out.WriteString(before + beginTable + "\n" + printedBy(t, line) + "\n" + endTable)
		doc = after
		tables++
	}
	if tables == 0 {
		return "", errors.New("there is no table")
	}
	return out.String() + doc, nil
}

// printedBy returns what a command line prints.
func printedBy(t *testing.T, line string) string {
	t.Helper()
	var out, errs bytes.Buffer
	std := &stdio{out: &out, err: &errs, getenv: func(string) string { return "" }}
	if status := run(t.Context(), shellWords(line), std); status != exitOK {
		t.Fatalf("weir %s: status %d: %s", line, status, &errs)
	}
	return out.String()
}

// shellWords splits a command line as a shell does, as far as documents need it: at blanks and
// continued lines, but not within quotes.
func shellWords(line string) []string {
	var words []string
	line = strings.ReplaceAll(line, "\\\n", " ")
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
