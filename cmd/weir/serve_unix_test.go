//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// SIGHUP reads the tenants again, whether they are good or not; the server goes on.
func TestServeHangup(t *testing.T) {
	s, path, _ := serve(t, "tenants: []\n")
	s.signal(t, syscall.SIGHUP)
	if line := s.await(t, "tenants in force"); line["tenants"] != 0.0 {
		t.Errorf("the log says %v", line)
	}
	if err := os.WriteFile(path, []byte("tenants: [}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGHUP)
	line := s.await(t, "the tenants file is refused; the tenants stay as they were")
	if text, _ := line["error"].(string); !strings.Contains(text, "tenants.yaml:1:11: not YAML: ") {
		t.Errorf("the error is %v", line["error"])
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != exitOK {
		t.Errorf("exit status %d", code)
	}
}

// SIGTERM and SIGINT begin a drain; a second signal does not wait for it.
func TestServeDrains(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		s, _, _ := serve(t, "tenants: []\n", "--drain", "1h")
		s.signal(t, sig)
		s.await(t, "draining")
		s.signal(t, syscall.SIGTERM) // at once, so it is no second one
		s.signal(t, os.Interrupt)
		if code := s.wait(t); code != signalStatus(os.Interrupt) {
			t.Errorf("%v: a drain that was cut short exits with %d", sig, code)
		}
		s, _, _ = serve(t, "tenants: []\n", "--drain", "1ms")
		s.signal(t, sig)
		s.await(t, "stopped")
		if code := s.wait(t); code != exitOK {
			t.Errorf("%v: exit status %d", sig, code)
		}
	}
}
