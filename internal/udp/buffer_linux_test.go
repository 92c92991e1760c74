package udp_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// A buffer that is asked for so many datagrams has room for so many of the longest, hardly
// more, and for more of the shorter ones: this is where
// the number that the kernel counts for each comes from.
func TestReadBufferHolds(t *testing.T) {
	const room = 300
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for size, most := range map[int]int{1200: room + room/20, 112: 4 * room} {
			c := listen(t, udp.Host(), addr, udp.Options{ReadBuffer: udp.ReadBufferFor(room)})
			if got := udp.HeldBy(c.ReadBuffer()); got < room {
				t.Skipf("%s is too low here for %d datagrams: %d", udp.ReadBufferSetting, room, got)
			}
			const sent = 5 * room
			send(t, c.LocalAddr(), size, sent)
			held := takeAll(t, c)
			if held < room || held > most {
				t.Errorf("%s: of %d datagrams of %d bytes %d were held, want %d to %d", addr, sent, size, held, room, most)
			}
		}
	}
}

// What waits is told as the buffer's size is, and stays when that becomes smaller.
func TestQueued(t *testing.T) {
	const room, sent = 300, 100
	c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{ReadBuffer: udp.ReadBufferFor(room)})
	s, ok := c.(interface {
		Queued() int
		SetReadBuffer(bytes int) error
	})
	if !ok {
		t.Fatal("a socket does not tell what waits")
	}
	if n := s.Queued(); n != 0 {
		t.Errorf("%d bytes wait in a new socket", n)
	}
	send(t, c.LocalAddr(), 1200, sent)
	if n := udp.HeldBy(s.Queued()); n < sent*9/10 || n > sent*11/10 {
		t.Errorf("room for %d datagrams is in use, by %d", n, sent)
	}
	if err := s.SetReadBuffer(udp.ReadBufferFor(sent / 2)); err != nil {
		t.Fatal(err)
	}
	send(t, c.LocalAddr(), 1200, sent) // for which there is no room
	if n := takeAll(t, c); n != sent {
		t.Errorf("%d datagrams are there, want %d", n, sent)
	}
	if n := udp.HeldBy(c.ReadBuffer()); n != sent/2 {
		t.Errorf("there is room for %d datagrams, want %d", n, sent/2)
	}
}

// The sockets of a group have the same part of the buffer each.
func TestGroupSharesReadBuffer(t *testing.T) {
	for n := 1; n <= 3; n++ {
		group, err := udp.ListenGroup(udp.Host(), netip.MustParseAddrPort("127.0.0.1:0"), n, udp.Options{ReadBuffer: 120_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range group {
			if got := c.ReadBuffer(); got != 120_000/n {
				t.Errorf("one of %d has %d bytes", n, got)
			}
			c.Close()
		}
	}
	group := listenGroup(t, udp.Host(), "127.0.0.1:0", 2) // 0 is the system's default
	if c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{}); group[1].ReadBuffer() != c.ReadBuffer() {
		t.Errorf("without a size it is %d, of a socket alone %d", group[1].ReadBuffer(), c.ReadBuffer())
	}
}

// send sends n datagrams over loopback.
func send(t *testing.T, to netip.AddrPort, size, n int) {
	t.Helper()
	c := listen(t, udp.Host(), netip.AddrPortFrom(to.Addr(), 0).String(), udp.Options{})
	ds := []udp.Datagram{{Buf: make([]byte, size), N: size, Peer: to}}
	for range n {
		if _, err := c.Write(ds); err != nil {
			t.Fatal(err)
		}
	}
}

// takeAll reads what is there, and returns how many datagrams that is.
func takeAll(t *testing.T, c udp.Conn) (n int) {
	t.Helper()
	ds := make([]udp.Datagram, 32)
	for i := range ds {
		ds[i].Buf = make([]byte, 1201)
	}
	for c.Pending() {
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		read, err := c.Read(ds)
		if err != nil {
			t.Fatal(err)
		}
		n += read
	}
	return n
}
