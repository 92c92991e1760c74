package udp_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

var (
	ipA  = netip.MustParseAddr("10.0.0.1")
	ipA2 = netip.MustParseAddr("10.0.0.2")
	ipA6 = netip.MustParseAddr("fd00::1")
	ipB  = netip.MustParseAddr("10.0.0.9")
)

func TestNetworkAddresses(t *testing.T) {
	n := udp.NewNetwork()
	a, b := n.Host(ipA, ipA2, ipA6), n.Host(ipB)
	server := listen(t, a, "0.0.0.0:29292", udp.Options{})
	client := listen(t, b, "0.0.0.0:0", udp.Options{})

	write(t, client, "ping", netip.AddrPortFrom(ipA2, 29292), netip.Addr{})
	d := read(t, server, 100)
	if d.Peer != netip.AddrPortFrom(ipB, client.LocalAddr().Port()) || d.Local != ipA2 {
		t.Fatalf("from %v to %v", d.Peer, d.Local)
	}
	write(t, server, "pong", d.Peer, d.Local)
	if d := read(t, client, 2); d.Peer != netip.AddrPortFrom(ipA2, 29292) || string(d.Payload()) != "po" {
		t.Errorf("answer %q from %v", d.Payload(), d.Peer)
	}
	write(t, server, "pong", d.Peer, netip.Addr{})
	if d := read(t, client, 10); d.Peer.Addr() != ipA {
		t.Errorf("answer without a source named from %v", d.Peer)
	}
	if got := a.Ports(); !slices.Equal(got, []uint16{29292}) {
		t.Errorf("open ports %v", got)
	}
}

func TestNetworkRefuses(t *testing.T) {
	n := udp.NewNetwork()
	b := n.Host(ipB)
	for _, addr := range []string{"[::]:0", "10.0.0.1:0"} {
		if _, err := b.Listen(netip.MustParseAddrPort(addr), udp.Options{}); !errors.Is(err, udp.ErrNotLocal) {
			t.Errorf("listen %s: %v", addr, err)
		}
	}
	c := listen(t, b, "0.0.0.0:7", udp.Options{})
	for _, d := range []udp.Datagram{
		{Peer: netip.MustParseAddrPort("[fd00::1]:1")},
		{Peer: netip.MustParseAddrPort("10.0.0.1:1"), Local: ipA},
	} {
		if _, err := c.Write([]udp.Datagram{d}); !errors.Is(err, udp.ErrNoRoute) {
			t.Errorf("write %v from %v: %v", d.Peer, d.Local, err)
		}
	}
	for _, to := range []string{"10.0.0.1:1", "10.0.0.9:8"} { // nobody there
		write(t, c, "lost", netip.MustParseAddrPort(to), netip.Addr{})
	}
	defer func() {
		if recover() == nil {
			t.Error("an address was given to two hosts")
		}
	}()
	n.Host(ipB)
}

func TestNetworkLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := udp.NewNetwork()
		a, b := listen(t, n.Host(ipA), "10.0.0.1:1", udp.Options{}), listen(t, n.Host(ipB), "10.0.0.9:1", udp.Options{})
		refused := errors.New("refused")
		n.SetLink(func(p udp.Packet) udp.Fate {
			switch string(p.Payload) {
			case "slow":
				return udp.Fate{Delay: 30 * time.Millisecond}
			case "twice":
				return udp.Fate{Copies: 1}
			case "lost":
				return udp.Fate{Drop: true}
			case "refused":
				return udp.Fate{Err: refused}
			}
			return udp.Fate{}
		})
		start := time.Now()
		for _, p := range []string{"slow", "lost", "twice", "plain"} {
			write(t, a, p, b.LocalAddr(), netip.Addr{})
		}
		if _, err := a.Write([]udp.Datagram{{Buf: []byte("refused"), N: 7, Peer: b.LocalAddr()}}); !errors.Is(err, refused) {
			t.Errorf("Write = %v", err)
		}
		ds := make([]udp.Datagram, 5)
		for i := range ds {
			ds[i].Buf = make([]byte, 10)
		}
		got, err := b.Read(ds)
		if got != 3 || err != nil {
			t.Fatalf("Read = %d, %v", got, err)
		}
		for i, want := range []string{"twice", "twice", "plain"} {
			if string(ds[i].Payload()) != want {
				t.Errorf("datagram %d is %q, want %q", i, ds[i].Payload(), want)
			}
		}
		if d := read(t, b, 10); string(d.Payload()) != "slow" || time.Since(start) != 30*time.Millisecond {
			t.Errorf("%q after %v", d.Payload(), time.Since(start))
		}
	})
}

func TestNetworkQueueIsBounded(t *testing.T) {
	n := udp.NewNetwork()
	c := listen(t, n.Host(ipA), "10.0.0.1:1", udp.Options{})
	for range 5000 {
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
	}
	ds := make([]udp.Datagram, 5000)
	if got, err := c.Read(ds); err != nil || got >= 5000 || got < 1000 {
		t.Errorf("Read = %d, %v", got, err)
	}
}
