package runner

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/udp"
)

// `go test ./conformance/runner -run TestClients -everything` plays all cases with
// the clients of this repository, as .ci/run does. It takes a few minutes.
var everything = flag.Bool("everything", false, "play all cases with child processes")

// few are the cases that are played in every run of the tests: one of each kind.
const few = `^(keys/bad-checksum|key-vectors/(v1-cookie|legacy-zero-quotas|format-version-2)|policy/(default|bad-gap-0)|wire/(mode-.*|same-bytes|layout-1)|` +
	`fallback/(second-of-three|timeout)|identity/stranger|reports/to-all|dns/skipped-targets|ports/old-port-is-heard)$`

// variable tells this test binary to be a naive client with a fault, in a child
// process.
const variable = "CONFORMANCE_NAIVE"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(variable); ok {
		beNaive(fault)
		return
	}
	goleak.VerifyTestMain(m)
}

func beNaive(fault string) {
	if fault == "deaf" { // it does not even see that its input has ended
		select {}
	}
	c := newNaive(udp.Host(), fault)
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		c.tell.Close()
	}()
	_, _ = io.Copy(os.Stdout, c)
	c.End()
}

// playProcess plays cases with a client in real time.
func playProcess(t *testing.T, attempts int, match, program string, args ...string) (Summary, []Result) {
	t.Helper()
	clients := NewProcesses(os.Stderr, program, args...)
	defer clients.End()
	var results []Result
	s, err := Run(t.Context(), Config{
		Start: clients.Start, Match: regexp.MustCompile(match), Attempts: attempts, Done: func(r Result) { results = append(results, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, results
}

// wantConforming fails for what the client did wrong. What a slow machine left open
// is told, and fails nothing.
func wantConforming(t *testing.T, match, program string, args ...string) {
	t.Helper()
	if *everything {
		match = ""
	}
	s, results := playProcess(t, 3, match, program, args...)
	t.Logf("%+v", s)
	for _, r := range results {
		switch r.Verdict {
		case Failed:
			t.Errorf("%s: %v", r.Name, r.Findings)
		case Inconclusive, Skipped:
			t.Logf("%s: %v, %s", r.Name, r.Verdict, r.Reason)
		}
	}
	if s.Passed+s.Skipped+s.Inconclusive != len(results) || s.Passed == 0 && s.Inconclusive == 0 {
		t.Errorf("%+v of %d results", s, len(results))
	}
}

// TestClientsGo plays with Weir's own client.
func TestClientsGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "adapter")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../adapter/go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantConforming(t, few, program)
}

// TestClientsPython plays with a client that shares no line with this module.
func TestClientsPython(t *testing.T) {
	// The interpreter itself, and not what may stand before it in PATH.
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("there is no python3: %v", err)
	}
	wantConforming(t, few, strings.TrimSpace(string(out)), "../adapter/python/adapter.py")
}

// TestClientsBroken sees in real time, too, that what is wrong fails, and that it is
// not taken for a slow machine's fault.
func TestClientsBroken(t *testing.T) {
	for fault, name := range map[string]string{
		"ignores-preference": "fallback/second-of-three", "sends-after-the-horizon": "fallback/timeout", "re-seals-replays": "wire/same-bytes",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv(variable, fault)
			s, results := playProcess(t, 1, "^"+name+"$", self(t))
			if s.Passed > 0 || len(results) != 1 {
				t.Errorf("%+v %+v", s, results)
			}
			if s.Inconclusive > 0 {
				t.Skipf("the machine is too slow: %s", results[0].Reason)
			}
		})
	}
}

func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestProcessesEnd kills a client that does not see that its input has ended.
func TestProcessesEnd(t *testing.T) {
	t.Setenv(variable, "deaf")
	clients := NewProcesses(io.Discard, self(t))
	defer clients.End()
	c, err := clients.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(c)
		read <- err
	}()
	c.End()
	select {
	case err := <-read:
		if err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("its output has not ended")
	}
}

// TestProcessesNone is a program that does not exist.
func TestProcessesNone(t *testing.T) {
	clients := NewProcesses(io.Discard, filepath.Join(t.TempDir(), "none"))
	defer clients.End()
	_, err := Run(t.Context(), Config{Start: clients.Start})
	if err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Error(err)
	}
}
