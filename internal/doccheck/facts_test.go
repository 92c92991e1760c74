package doccheck_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/server"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same reports what is in only one of two sets.
func same(t *testing.T, what string, code, docs map[string]bool) {
	t.Helper()
	if len(code) == 0 {
		t.Errorf("no %s found in what runs", what)
	}
	for name := range code {
		if !docs[name] {
			t.Errorf("%s %s is not documented", what, name)
		}
	}
	for name := range docs {
		if !code[name] {
			t.Errorf("%s %s is documented and does not exist", what, name)
		}
	}
}

func matches(re, text string) map[string]bool {
	set := map[string]bool{}
	for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(text, -1) {
		set[m[1]] = true
	}
	return set
}

// metric is how metrics are compared: name, type and labels in the order of the alphabet.
func metric(name, kind string, labels []string) string {
	slices.Sort(labels)
	return fmt.Sprintf("%s (%s, labels [%s])", name, kind, strings.Join(labels, " "))
}

// documented returns the metrics of the table in docs/server.md. Types are as the text above
// it has them.
func documented(admin string) map[string]bool {
	set := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`weir_[^|]*) \\| ([^|]*)\\|").FindAllStringSubmatch(admin, -1) {
		for name := range matches("`(weir_[a-z_]+)`", row[1]) {
			kind := "gauge"
			switch {
			case strings.HasSuffix(name, "_total"):
				kind = "counter"
			case name == "weir_answer_duration_seconds":
				kind = "histogram"
			}
			set[metric(name, kind, strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' }))] = true
		}
	}
	return set
}

// TestServerFacts holds the tables of docs/server.md against what a server shows:
// metrics, with their types and labels, and reasons for drops.
func TestServerFacts(t *testing.T) {
	metrics, reasons := scrape(t)
	doc := read(t, "docs/server.md")
	_, admin, _ := strings.Cut(doc, "## Admin")
	same(t, "metric", metrics, documented(admin))
	_, dropped, _ := strings.Cut(doc, "## Dropped datagrams")
	dropped, _, _ = strings.Cut(dropped, "\n## ")
	same(t, "reason", reasons, matches("(?m)^\\| `([a-z_]+)` \\|", dropped))
}

// scrape starts a server and reads its metrics.
func scrape(t *testing.T) (metrics, reasons map[string]bool) {
	t.Helper()
	key, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{
		Listen: []string{"127.0.0.1:0"}, Tenants: []server.Tenant{{Keys: []apikey.Key{key}}},
		Admin: "127.0.0.1:0", Drain: server.NoDrain,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	countLabel(t, key, s)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%v/metrics", s.AdminAddr()), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, reasons = map[string]bool{}, map[string]bool{}
	reason := regexp.MustCompile(`reason="([^"]*)"`)
	kinds := map[string]string{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "# TYPE weir_"); ok {
			name, kind, _ := strings.Cut(name, " ")
			kinds["weir_"+name] = kind
		}
		if m := regexp.MustCompile(`^(weir_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? [^ ]+$`).FindStringSubmatch(line); len(m) == 3 && kinds[m[1]] != "" {
			labels := slices.Collect(maps.Keys(matches(`([a-z_]+)="`, m[2])))
			metrics[metric(m[1], kinds[m[1]], slices.DeleteFunc(labels, func(l string) bool { return l == "le" }))] = true
		}
		if m := reason.FindStringSubmatch(line); m != nil {
			reasons[m[1]] = true
		}
	}
	return metrics, reasons
}

// countLabel sends a request with a label, until it is decided: labels have no
// metric before.
func countLabel(t *testing.T, key apikey.Key, s *server.Server) {
	t.Helper()
	client, err := weir.New(weir.Config{Key: key, Servers: []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := weir.Request{Resources: []weir.Resource{weir.Bucket("b", 1, time.Second).Take(1)}, Label: "l"}
	for {
		_, err := client.Acquire(t.Context(), r)
		if err == nil {
			return
		}
		if !errors.Is(err, weir.ErrTimeout) {
			t.Fatal(err)
		}
	}
}

// TestCommandFacts holds docs/cli.md against the command: every command has a
// section, and every flag is in one, and the other way round.
func TestCommandFacts(t *testing.T) {
	bin := build(t)
	commands, flags := map[string]bool{}, map[string]bool{}
	walk(t, bin, nil, commands, flags)
	doc := read(t, "docs/cli.md")
	same(t, "command", commands, matches(`(?m)^## weir ([a-z -]+)$`, doc))
	same(t, "flag", flags, matches("(?m)^\\| `--([a-z-]+)", doc))
}

var (
	helpCommand = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)*)  `)
	helpFlag    = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`)
)

// walk collects the commands below one, and all of their flags.
func walk(t *testing.T, bin string, command []string, commands, flags map[string]bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), bin, append(command, "--help")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, group := strings.Cut(string(out), "\nCommands:\n")
	if !group {
		commands[strings.Join(command, " ")] = true
		_, list, _ = strings.Cut(string(out), "\nFlags:\n")
		for _, m := range helpFlag.FindAllStringSubmatch(list, -1) {
			if m[1] != "help" {
				flags[m[1]] = true
			}
		}
		return
	}
	for _, m := range helpCommand.FindAllStringSubmatch(list, -1) {
		walk(t, bin, strings.Fields(m[1]), commands, flags)
	}
}
