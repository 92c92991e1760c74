package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/server"
)

// served is a `weir serve` or `weir dns` process.
type served struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan map[string]any // its log, closed when that ends
}

// serve starts the command with a tenants file of this text, and waits until it serves.
func serve(t *testing.T, tenants string, args ...string) (s *served, path string, serving map[string]any) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte(tenants), 0o600); err != nil {
		t.Fatal(err)
	}
	s = startServed(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--tenants", path}, args...)...)
	serving = s.await(t, "serving")
	return s, path, serving
}

// startServed starts a command that serves until it is stopped.
func startServed(t *testing.T, args ...string) *served {
	t.Helper()
	args = append(args, "--log-format", "json", "--exit-with-stdin")
	s := &served{cmd: exec.Command("weir", args...), lines: make(chan map[string]any, 100)}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.lines)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			var line map[string]any
			if err := json.Unmarshal(in.Bytes(), &line); err != nil {
				line = map[string]any{"msg": in.Text()}
			}
			s.lines <- line
		}
	}()
	t.Cleanup(func() {
		s.stdin.Close()
		for range s.lines { // until it has ended
		}
		_ = s.cmd.Wait() // what the test did not ask for does not matter
	})
	return s
}

// await returns the next line of the log with this message.
func (s *served) await(t *testing.T, msg string) map[string]any {
	t.Helper()
	for line := range s.lines {
		if line["msg"] == msg {
			return line
		}
	}
	t.Fatalf("the process ended and never said %q", msg)
	return nil
}

// wait waits for the end and returns the exit status, -1 after a signal.
func (s *served) wait(t *testing.T) int {
	t.Helper()
	for range s.lines {
	}
	_ = s.cmd.Wait() // the state says it
	return s.cmd.ProcessState.ExitCode()
}

// The line that says "serving" has what a supervisor must know.
func TestServingLine(t *testing.T) {
	s, _, line := serve(t, "tenants: []\n", "--listen", "127.0.0.1:0", "--dns", "127.0.0.1:0", "--zone", "rl.test", "--admin", "127.0.0.1:0")
	listen, _ := line["listen"].([]any)
	if len(listen) != 2 || listen[0] == listen[1] || listen[0] == "127.0.0.1:0" {
		t.Errorf("listen is %v", line["listen"])
	}
	for _, name := range []string{"server_id", "dns", "admin"} {
		if text, ok := line[name].(string); !ok || text == "" || text == "127.0.0.1:0" {
			t.Errorf("%s is %v", name, line[name])
		}
	}
	// A parent that is gone is not drained for.
	s.stdin.Close()
	if code := s.wait(t); code != exitOK {
		t.Errorf("exit status %d", code)
	}
}

// The flags' defaults are those of the package, whose documentation they are told by.
func TestServeDefaults(t *testing.T) {
	var c cli
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve", "--tenants", "tenants.yaml"}); err != nil {
		t.Fatal(err)
	}
	std, _, _ := testIO("", nil)
	cfg, err := c.Serve.config(std)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Skew != server.DefaultSkew || cfg.DedupTTLCap != server.DefaultDedupTTLCap || cfg.TTL != server.DefaultTTL ||
		cfg.Identities != server.DefaultIdentities || cfg.AnswerBytes != server.DefaultAnswerBytes || cfg.MaxLabels != server.DefaultMaxLabels ||
		cfg.ReceiveBuffer != (server.ReceiveBuffer{Wait: server.DefaultReceiveWait, Rate: server.DefaultReceiveRate}) || cfg.Drain != 0 || len(cfg.Listen) != 1 || cfg.NoSteering {
		t.Errorf("the defaults are %+v", cfg)
	}
}

func TestDrainFlag(t *testing.T) {
	for text, want := range map[string]string{"0s": "-1ns", "3s": "3s", "-1s": "-1ns"} {
		var c cli
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"serve", "--tenants", "tenants.yaml", "--drain=" + text}); err != nil {
			t.Fatal(err)
		}
		std, _, _ := testIO("", nil)
		if cfg, err := c.Serve.config(std); err != nil || cfg.Drain.String() != want {
			t.Errorf("--drain=%s is %v, %v, want %s", text, cfg.Drain, err, want)
		}
	}
}

// serveCommand is what flags make of the command.
func serveCommand(t *testing.T, flags ...string) *serveCmd {
	t.Helper()
	var c cli
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"serve"}, flags...)); err != nil {
		t.Fatal(err)
	}
	return &c.Serve
}

// A time of 0 is not what the default is asked for by.
func TestSteeringFlag(t *testing.T) {
	for text, off := range map[string]bool{"on": false, "off": true} {
		std, _, _ := testIO("", nil)
		cfg, err := serveCommand(t, "--tenants=tenants.yaml", "--steering="+text).config(std)
		if err != nil || cfg.NoSteering != off {
			t.Errorf("--steering=%s: off is %v, %v", text, cfg.NoSteering, err)
		}
	}
}

func TestServeZeroTimes(t *testing.T) {
	for _, flag := range []string{"--skew=0s", "--dedup-ttl-cap=0s", "--ttl=0s", "--skew=-1s"} {
		std, _, _ := testIO("", nil)
		if cfg, err := serveCommand(t, "--tenants=tenants.yaml", flag).config(std); err == nil {
			t.Errorf("%s is taken: skew %v, cap %v, TTL %v", flag, cfg.Skew, cfg.DedupTTLCap, cfg.TTL)
		}
	}
	std, _, _ := testIO("", nil)
	if err := (&dnsCmd{Listen: "127.0.0.1:0", Zone: "rl.test", Members: "none.yaml"}).Run(t.Context(), std); err == nil || !strings.Contains(err.Error(), "--ttl") {
		t.Errorf("weir dns --ttl=0s: %v", err)
	}
}

// A server has a worker for each processor, and the scheduler one processor more than these, unless there is one or the
// environment says how many it has.
func TestServeProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	if workers, scheduler := servedProcessors(t); workers > 1 && scheduler != workers+1 || workers == 1 && scheduler != 1 {
		t.Errorf("the scheduler has %d processors, for %d workers", scheduler, workers)
	}
	t.Setenv("GOMAXPROCS", "3")
	if workers, scheduler := servedProcessors(t); workers != 3 || scheduler != 3 {
		t.Errorf("the scheduler has %d processors, for %d workers, where both are to be 3", scheduler, workers)
	}
}

// servedProcessors starts a server and returns how many workers it has, and processors its scheduler.
func servedProcessors(t *testing.T) (workers, scheduler int) {
	t.Helper()
	_, _, serving := serve(t, "tenants: []", "--admin", "127.0.0.1:0")
	response, err := http.Get("http://" + serving["admin"].(string) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	const name = "\ngo_sched_gomaxprocs_threads "
	_, after, found := bytes.Cut(text, []byte(name))
	value, _, _ := bytes.Cut(after, []byte("\n"))
	if scheduler, err = strconv.Atoi(string(value)); err != nil || !found {
		t.Fatalf("%v: %s", err, text)
	}
	return bytes.Count(text, []byte("\nweir_worker_datagrams_total{")), scheduler
}
