package udp_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

const insideNamespace = "WEIR_TEST_INSIDE_NAMESPACE"

// What goes to a neighbor that is dead lies in the send buffer while the system
// asks for its hardware address, for seconds. That is no reason to wait: neither
// for more of it, nor for what goes to the living. It needs a network of its own,
// with a neighbor that never answers.
func TestDeadNeighborHoldsNobodyUp(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		runInNamespace(t)
		return
	}
	for _, batched := range []bool{true, false} {
		deadNeighbor(t, udp.Options{WriteBuffer: 8192, NoBatch: !batched})
	}
}

func deadNeighbor(t *testing.T, o udp.Options) {
	for _, args := range []string{
		"link set lo up", "link add near type veth peer name far", "addr add 192.0.2.1/24 dev near",
		"link set near up", "link set far up",
	} {
		ip(t, args)
	}
	living := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	c := listen(t, udp.Host(), "0.0.0.0:0", o)
	dead := []udp.Datagram{{Buf: make([]byte, 200), N: 200, Peer: netip.MustParseAddrPort("192.0.2.2:9")}}
	var full error
	for n := 0; full == nil; n++ {
		if n == 1000 {
			t.Fatalf("%d datagrams had room", n)
		}
		_, full = c.Write(dead)
	}
	if udp.Closed(full) || !strings.Contains(full.Error(), "send buffer is full") {
		t.Fatal(full)
	}
	toLiving := []udp.Datagram{{Buf: []byte("x"), N: 1, Peer: living.LocalAddr()}}
	if _, err := c.Write(toLiving); err == nil || err.Error() != strings.ReplaceAll(full.Error(), dead[0].Peer.String(), living.LocalAddr().String()) {
		t.Errorf("beside the dead neighbor: %v", err)
	}
	ip(t, "link delete near") // and what lay in the buffer with it
	if _, err := c.Write(toLiving); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if d := read(t, living, 10); string(d.Payload()) != "x" {
		t.Errorf("read %q", d.Payload())
	}
}

// Addresses of a link are told apart by its number, and may be given by its name.
func TestLinkLocalPeers(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		runInNamespace(t)
		return
	}
	for _, args := range []string{
		"link set lo up", "link add near type veth peer name far", "link set near up", "link set far up",
		"addr add fe80::7/64 dev near nodad",
	} {
		ip(t, args)
	}
	for name, s := range twins() {
		if name == "memory" {
			continue
		}
		c := listen(t, s, "[::]:0", udp.Options{AskedAddr: true})
		to := netip.AddrPortFrom(netip.MustParseAddr("fe80::7%near"), c.LocalAddr().Port())
		write(t, c, "by name", to, netip.Addr{})
		d := read(t, c, 10)
		if d.Peer.Addr().WithZone("") != to.Addr().WithZone("") || d.Peer.Addr().Zone() == "" {
			t.Errorf("%s: from %v", name, d.Peer)
		}
		if n, err := c.Write([]udp.Datagram{d, {Buf: d.Buf, N: d.N, Peer: to}, d}); n != 3 || err != nil {
			t.Errorf("%s: answers: %d, %v", name, n, err)
		}
		for range 3 {
			if d := read(t, c, 10); string(d.Payload()) != "by name" {
				t.Errorf("%s: %q", name, d.Payload())
			}
		}
	}
}

// Nor is it if the zone of its address has a name.
func TestDeadLinkLocalNeighborHoldsNobodyUp(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		runInNamespace(t)
		return
	}
	for _, args := range []string{
		"link set lo up", "link add near type veth peer name far", "link set near up", "link set far up",
		"addr add fe80::7/64 dev near nodad",
	} {
		ip(t, args)
	}
	for _, noBatch := range []bool{false, true} {
		c := listen(t, udp.Host(), "[::]:0", udp.Options{WriteBuffer: 8192, NoBatch: noBatch})
		dead := []udp.Datagram{{Buf: make([]byte, 200), N: 200, Peer: netip.MustParseAddrPort("[fe80::99%near]:9")}}
		begin := time.Now()
		var full error
		for n := 0; full == nil; n++ {
			if n == 1000 || time.Since(begin) > 2*time.Second { // the system gives it up after three
				t.Fatalf("NoBatch %v: %d datagrams had room", noBatch, n)
			}
			_, full = c.Write(dead)
		}
		if !strings.Contains(full.Error(), "send buffer is full") {
			t.Error(full)
		}
		dead[0].Peer = netip.MustParseAddrPort("[fe80::99%nowhere]:9")
		if _, err := c.Write(dead); !errors.Is(err, udp.ErrNoRoute) {
			t.Errorf("to a zone that is none: %v", err)
		}
	}
}

// runInNamespace runs the test once more, in a network of its own.
func runInNamespace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), insideNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skip("no namespaces for us here: ", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

// ip runs the system's ip command.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Skipf("ip %s: %v: %s", args, err, out)
	}
}
