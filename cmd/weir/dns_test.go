package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/discovery"
)

// A DNS server follows its members file and SIGHUP, keeps what it has when the
// file is broken, and ends with its standard input.
func TestDNSFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("members: [{id: 5, addr: 127.0.0.1:29292}]\n")
	s := startServed(t, "dns", "--listen", "127.0.0.1:0", "--zone", "rl.test", "--members", path)
	line := s.await(t, "serving")
	addr, _ := line["dns"].(string)
	r, err := discovery.NewDNS(addr)
	if err != nil {
		t.Fatal(err)
	}
	found := func() string {
		t.Helper()
		records, _, err := r.LookupSRV(t.Context(), "_ratelimitly._udp.c-7.rl.test")
		if err != nil {
			t.Fatal(err)
		}
		var targets []string
		for _, rec := range records {
			targets = append(targets, strings.TrimSuffix(rec.Target, ".rl.test."))
		}
		return strings.Join(targets, " ")
	}
	if got := found(); got != "s-5" || line["members"] != 1.0 || line["zone"] != "rl.test" {
		t.Errorf("found %s; %v", got, line)
	}
	if addrs, _, err := r.LookupAddrs(t.Context(), "ns.rl.test"); err != nil || len(addrs) != 1 || addrs[0].String() != "127.0.0.1" {
		t.Errorf("the name server: %v, %v", addrs, err)
	}
	write("members: [{id: 5, addr: 127.0.0.1:29292}, {id: 6, addr: 127.0.0.1:29293}]\n")
	s.await(t, "members changed")
	if got := found(); got != "s-5 s-6" {
		t.Errorf("found %s", got)
	}
	write("members: [}\n")
	line = s.await(t, "members file not taken, the members stay as they were")
	if text, _ := line["error"].(string); !strings.Contains(text, "members.yaml:1:11: not YAML") {
		t.Errorf("the error is %v", line["error"])
	}
	if got := found(); got != "s-5 s-6" {
		t.Errorf("with a broken file: found %s", got)
	}
	s.stdin.Close()
	if code := s.wait(t); code != exitOK {
		t.Errorf("exit status %d", code)
	}
}
