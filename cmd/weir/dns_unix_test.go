//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// SIGHUP reads the members again; SIGTERM and SIGINT are a clean end.
func TestDNSSignals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.yaml")
	if err := os.WriteFile(path, []byte("members: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		s := startServed(t, "dns", "--listen", "127.0.0.1:0", "--zone", "rl.test", "--members", path)
		s.await(t, "serving")
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		s.signal(t, syscall.SIGHUP)
		s.await(t, "members file not taken, the members stay as they were")
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		s.signal(t, sig)
		if code := s.wait(t); code != exitOK {
			t.Errorf("%v: exit status %d", sig, code)
		}
	}
}
