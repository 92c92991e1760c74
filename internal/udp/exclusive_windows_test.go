package udp_test

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/weirhq/weir/internal/udp"
)

// On Windows a process may bind a specific address on the port of somebody's
// wildcard socket, even with force (SO_REUSEADDR), and gets its datagrams then.
// Ours has forbidden that before it was bound.
func TestWildcardPortCannotBeTakenOver(t *testing.T) {
	ours := listen(t, udp.Host(), "0.0.0.0:0", udp.Options{})
	port := ours.LocalAddr().Port()
	fd, err := windows.Socket(windows.AF_INET, windows.SOCK_DGRAM, windows.IPPROTO_UDP)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = windows.Closesocket(fd) }()
	if err := windows.SetsockoptInt(fd, windows.SOL_SOCKET, windows.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := windows.Bind(fd, &windows.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		t.Errorf("127.0.0.1:%d was taken from under 0.0.0.0:%d", port, port)
	}
	// And what is sent there is ours.
	plain, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	if _, err := plain.WriteToUDPAddrPort([]byte("x"), to); err != nil {
		t.Fatal(err)
	}
	if d := read(t, ours, 10); string(d.Payload()) != "x" {
		t.Errorf("read %q", d.Payload())
	}
}
