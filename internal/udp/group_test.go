package udp_test

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/weirhq/weir/internal/udp"
)

func listenGroup(t *testing.T, s udp.Stack, addr string, n int) []udp.Conn {
	t.Helper()
	group, err := udp.ListenGroup(s, netip.MustParseAddrPort(addr), n, udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range group {
		t.Cleanup(func() { c.Close() })
	}
	return group
}

// groupStacks are those that spread.
func groupStacks() map[string]udp.Stack {
	stacks := map[string]udp.Stack{"memory": udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"))}
	if runtime.GOOS == "linux" {
		stacks["host"] = udp.Host()
	}
	return stacks
}

// A group has one port, each of its sockets gets some of the flows, and all of a flow.
func TestGroupSpreadsFlows(t *testing.T) {
	for name, s := range groupStacks() {
		group := listenGroup(t, s, "127.0.0.1:0", 3)
		if len(group) != 3 {
			t.Fatalf("%s: %d sockets", name, len(group))
		}
		to := group[0].LocalAddr()
		for _, c := range group {
			if c.LocalAddr() != to || to.Port() == 0 {
				t.Errorf("%s: one is at %v, another at %v", name, to, c.LocalAddr())
			}
		}
		const flows = 60 // none of 3 sockets gets any of them once in 10^10
		home := make(map[netip.AddrPort]int)
		for range 3 {
			clients := make([]udp.Conn, 0, flows)
			for range flows / 3 {
				c := listen(t, s, "127.0.0.1:0", udp.Options{})
				clients = append(clients, c)
				for range 2 {
					write(t, c, "x", to, netip.Addr{})
				}
			}
			for i, g := range group {
				for g.Pending() {
					ds := space(1, 10)
					if _, err := g.Read(ds); err != nil {
						t.Fatal(err)
					}
					if was, seen := home[ds[0].Peer]; seen && was != i {
						t.Errorf("%s: a flow goes to %d and %d", name, was, i)
					}
					home[ds[0].Peer] = i
				}
			}
			if len(home) < len(clients) {
				t.Errorf("%s: %d flows arrived", name, len(home))
			}
		}
		counts := make([]int, len(group))
		for _, i := range home {
			counts[i]++
		}
		for i, n := range counts {
			if n == 0 {
				t.Errorf("%s: socket %d gets none of %d flows", name, i, flows)
			}
		}
	}
}

// Where nothing spreads there is one socket, and so there is if one is asked for.
func TestGroupOfOne(t *testing.T) {
	memory := udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"))
	if group := listenGroup(t, struct{ udp.Stack }{memory}, "127.0.0.1:7", 3); len(group) != 1 {
		t.Errorf("%d sockets where nothing spreads", len(group))
	}
	for name, s := range groupStacks() {
		if group := listenGroup(t, s, "127.0.0.1:0", 1); len(group) != 1 {
			t.Errorf("%s: %d sockets for one", name, len(group))
		}
	}
}

const takePort = "WEIR_TEST_TAKE_PORT"

// Sockets that share their port share it with nobody else, neither a plain socket nor
// another group, of this process or another.
func TestGroupIsExclusive(t *testing.T) {
	if at := os.Getenv(takePort); at != "" {
		if group, err := udp.ListenGroup(udp.Host(), netip.MustParseAddrPort(at), 2, udp.Options{}); !udp.InUse(err) {
			t.Errorf("another process has %d sockets there, %v", len(group), err)
		}
		return
	}
	for name, s := range groupStacks() {
		group := listenGroup(t, s, "127.0.0.1:0", 2)
		at := group[0].LocalAddr()
		for _, addr := range []netip.AddrPort{at, netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())} {
			for _, n := range []int{1, 2} {
				if _, err := udp.ListenGroup(s, addr, n, udp.Options{}); !udp.InUse(err) {
					t.Errorf("%s: %d sockets at %v: %v", name, n, addr, err)
				}
			}
		}
		if name == "host" {
			cmd := exec.Command(os.Args[0], "-test.run=^TestGroupIsExclusive$")
			cmd.Env = append(os.Environ(), takePort+"="+at.String())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
		for _, c := range group {
			c.Close()
		}
		listenGroup(t, s, at.String(), 2) // free again
	}
}
