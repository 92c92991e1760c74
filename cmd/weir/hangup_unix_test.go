//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/server"
)

// logHook is a log that calls a function before it takes the first line with a text,
// and another after the last that it waits for.
type logHook struct {
	mu          sync.Mutex
	text        bytes.Buffer
	first, last string
	begin, end  func()
}

func (h *logHook) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first != "" && strings.Contains(string(p), h.first) {
		h.first = ""
		h.begin()
	}
	if h.first == "" && strings.Contains(string(p), h.last) {
		h.end()
	}
	return h.text.Write(p)
}

// hangup sends SIGHUP to this process, which ends it unless it is caught.
func hangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Error(err)
	}
}

// A SIGHUP that comes while a server starts does not end it: once it serves, it reads
// the tenants again.
func TestServeHangupAtStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte("tenants: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &logHook{last: "tenants in force", end: cancel}
	std, _, _ := testIO("", nil)
	std.err = log
	c := serveCommand(t, "--tenants", path, "--listen", "127.0.0.1:0")
	err := c.run(ctx, std, func(cfg server.Config) (*server.Server, error) {
		hangup(t)
		return server.New(cfg)
	})
	if err != nil {
		t.Errorf("%v; the log is:\n%s", err, log.text.String())
	}
}

// So does a DNS server, here when it has just read its members.
func TestDNSHangupAtStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.yaml")
	if err := os.WriteFile(path, []byte("members: [{id: 5, addr: 127.0.0.1:29292}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &logHook{first: "members changed", last: "members file not taken", end: cancel}
	log.begin = func() {
		if err := os.Remove(path); err != nil { // the reload that is asked for will say so
			t.Error(err)
		}
		hangup(t)
	}
	std, _, _ := testIO("", nil)
	std.err = log
	c := dnsCmd{Listen: "127.0.0.1:0", Zone: "rl.test", Members: path, TTL: 5 * time.Second}
	if err := c.Run(ctx, std); err != nil {
		t.Errorf("%v; the log is:\n%s", err, log.text.String())
	}
}
