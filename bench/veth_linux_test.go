package main

import (
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// A server behind a pair of devices answers, bursts too, which are cut up on the way. The network is one of the
// test's own, and gone with its processes.
func TestVeth(t *testing.T) {
	if os.Getenv(vethVariable) == "" {
		args := []string{"--net", "--user", "--map-root-user"}
		for _, tool := range []string{"unshare", "ip", "ethtool"} {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skip(err)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "unshare", append(args, "true")...).CombinedOutput(); err != nil {
			t.Skipf("no namespaces can be made here: %v: %s", err, out)
		}
		child := exec.CommandContext(t.Context(), "unshare", append(args, os.Args[0], "-test.run", "^TestVeth$")...)
		child.Env = append(os.Environ(), vethVariable+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := enterNetwork(t.Context()); err != nil {
		t.Fatal(err)
	}
	tenant, err := newTenant("bench", 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := newVeth()
	s, err := startFloorOn(t.Context(), place{veth: &v}, tenant, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	if s.addr.Addr() != v.address {
		t.Errorf("it listens on %v, want %v", s.addr, v.address)
	}
	r, err := generator.Run(t.Context(), generator.Config{
		Keys: []apikey.Key{tenant.key}, Targets: []netip.AddrPort{s.addr}, Flows: 2, InFlight: 64, For: 200 * time.Millisecond,
	})
	if err != nil || r.Granted == 0 || r.Wrong > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestVethNeedsItsArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"lo"}, {"lo", "10.0.0.1"}, {"lo", "nowhere", "true"}} {
		if inside(t.Context(), args) == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
