package server

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
)

func TestReceiveBufferText(t *testing.T) {
	for text, want := range map[string]ReceiveBuffer{
		"50ms@100000": {50 * time.Millisecond, 100_000}, "1m0s@1": {time.Minute, 1}, "1.5ms@7": {1500 * time.Microsecond, 7},
	} {
		var b ReceiveBuffer
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want || b.String() != text {
			t.Errorf("%q is %v, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{
		"": `"" is no time at a rate, such as 50ms@100000: `, "50ms": `"50ms" is no time`, "50@9": `"50@9" is no time`, "@9": `"@9" is no time`,
		"50ms@": `"" is no number`, "50ms@1e5": `"1e5" is no number of datagrams a second`, "50ms@1@2": `"1@2" is no number`,
		"0s@0": `"0s@0" is no time`, "-1s@5": `"-1s@5" is no time`, "1s@0": `"0" is no number`, "1s@-5": `"-5" is no number`,
	} {
		b := ReceiveBuffer{1, 1}
		if err := b.UnmarshalText([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) || b != (ReceiveBuffer{1, 1}) {
			t.Errorf("%q is %v, %v; want the error %s", text, b, err, want)
		}
	}
}

// The workers of an address together have room for what comes in the time, and each for
// two batches at least.
func TestReceiveBufferBytes(t *testing.T) {
	for _, c := range []struct {
		text    string
		workers int
		each    int // datagrams
	}{
		{"50ms@100000", 1, 5000},
		{"50ms@100000", 2, 2500},
		{"50ms@100000", 3, 1667},
		{"1ms@64001", 1, 65}, // rounded up
		{"1ms@1", 1, 64},
		{"1ms@1", 7, 64},
		{"1m0s@1000", 1, 60_000},
	} {
		var b ReceiveBuffer
		if err := b.UnmarshalText([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if got, want := b.bytes(c.workers), udp.ReadBufferFor(c.each)*c.workers; got != want || b.check(c.workers) != nil {
			t.Errorf("%s for %d workers is %d bytes, want %d; %v", c.text, c.workers, got, want, b.check(c.workers))
		}
	}
}

func TestReceiveBufferBounds(t *testing.T) {
	c := Config{Listen: []string{"127.0.0.1:0"}, Tenants: make([]Tenant, 1), Workers: 1}
	for _, b := range []struct {
		buffer ReceiveBuffer
		want   string // in the error
	}{
		{ReceiveBuffer{}, ""},
		{ReceiveBuffer{time.Millisecond, 1}, ""},
		{ReceiveBuffer{time.Minute, 1000}, ""},
		{ReceiveBuffer{time.Millisecond, 1e9}, "more than 1 GiB for each worker"},
		{ReceiveBuffer{time.Minute, 1e9}, "more than 1 GiB for each worker"},
		{ReceiveBuffer{time.Millisecond - 1, 1}, "999.999µs is not from 1ms to 1m0s"},
		{ReceiveBuffer{time.Minute + 1, 1}, "1m0.000000001s is not"},
		{ReceiveBuffer{-time.Second, 1}, "-1s is not"},
		{ReceiveBuffer{0, 1}, "0s is not"},
		{ReceiveBuffer{time.Second, 0}, "0 datagrams a second are not from 1 to 1000000000"},
		{ReceiveBuffer{time.Second, -1}, "-1 datagrams"},
		{ReceiveBuffer{time.Second, 1e9 + 1}, "1000000001 datagrams"},
	} {
		c.ReceiveBuffer = b.buffer
		_, err := c.check()
		if b.want == "" {
			if err != nil {
				t.Errorf("%v: %v", b.buffer, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), "server: receive buffer: "+b.want) {
			t.Errorf("%v: %v, want %s", b.buffer, err, b.want)
		}
	}
}

// A server's sockets have the buffer that was asked for: of a burst that is as long as its
// workers are asked to hold, into the socket of one flow, that worker's part comes through.
func TestReceiveBufferHoldsABurst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sizes are not told everywhere, and not counted alike")
	}
	key := newKey(t, apikey.AuthAES, 7)
	s, err := New(Config{
		Listen: []string{"127.0.0.1:0", "127.0.0.1:0"}, Workers: 2, Tenants: []Tenant{{Keys: []apikey.Key{key}}},
		ReceiveBuffer: ReceiveBuffer{10 * time.Millisecond, 40_000}, // 200 each
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const each = 200
	for _, l := range s.listeners {
		for _, w := range l.workers {
			if got := w.conn.ReadBuffer(); got < udp.ReadBufferFor(each) {
				t.Skipf("%s is too low here: %d", udp.ReadBufferSetting, got)
			} else if got > udp.ReadBufferFor(each)+udp.ReadBufferFor(1) {
				t.Errorf("a worker has %d bytes, want %d", got, udp.ReadBufferFor(each))
			}
		}
	}
	c := dial(t, key, s.Addrs()[1])
	longest := make([]byte, 1200)
	for range 3 * each {
		if _, err := c.conn.WriteToUDPAddrPort(longest, c.to); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	ds := []udp.Datagram{{Buf: make([]byte, 1300)}}
	for _, w := range s.listeners[1].workers {
		for w.conn.Pending() {
			if _, err := w.conn.Read(ds); err != nil {
				t.Fatal(err)
			}
			held++
		}
	}
	if held < each || held > each*11/10 {
		t.Errorf("%d of %d datagrams were held, want %d", held, 3*each, each)
	}
}

// However little is asked for, each worker has room for two batches.
func TestLeastReceiveBuffer(t *testing.T) {
	s := &Server{settings: &settings{Config: Config{ReceiveBuffer: ReceiveBuffer{time.Millisecond, 1}, Workers: 3}}}
	s.settings.fill()
	if got, want := s.socketOptions().ReadBuffer, 3*udp.ReadBufferFor(leastHeld); got != want {
		t.Errorf("3 workers have %d bytes, want %d", got, want)
	}
}

// stingyStack gives sockets receive buffers of another size than they ask for.
type stingyStack struct {
	udp.Stack
	sizes map[netip.AddrPort]int // 0: not told
}

func (s stingyStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := s.Stack.Listen(addr, o)
	return stingyConn{c, s.sizes[addr]}, err
}

type stingyConn struct {
	udp.Conn
	size int
}

func (c stingyConn) ReadBuffer() int { return c.size }

// Where the system gives less than was asked for, one line of the log says so: which
// setting to raise to what, and what there is room for. A trial on loopback with the
// default is left alone.
func TestSmallReceiveBufferIsToldOf(t *testing.T) {
	loopback, open := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("192.0.2.1:2")
	asked := ReceiveBuffer{100 * time.Millisecond, 10_000} // 1000 datagrams
	least := udp.ReadBufferFor
	for _, c := range []struct {
		name   string
		buffer ReceiveBuffer
		sizes  map[netip.AddrPort]int
		want   string // of the line, if there is one
	}{
		{"as asked", asked, map[netip.AddrPort]int{loopback: least(1000), open: least(1000)}, ""},
		{"not told", asked, map[netip.AddrPort]int{loopback: 0, open: 0}, ""},
		{"a byte less", asked, map[netip.AddrPort]int{loopback: least(1000) - 1}, "receive_buffer=100ms@10000 "},
		{"one of two", asked, map[netip.AddrPort]int{loopback: least(250), open: least(1000)}, "enough_for=25ms@10000 or_for=100ms@2500"},
		{"the smallest of two", asked, map[netip.AddrPort]int{loopback: least(500), open: least(250)}, "enough_for=25ms@10000 or_for=100ms@2500"},
		{"the default on loopback", ReceiveBuffer{}, map[netip.AddrPort]int{loopback: least(100)}, ""},
		{"the default, open", ReceiveBuffer{}, map[netip.AddrPort]int{open: least(100)}, "enough_for=1ms@100000 or_for=50ms@2000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stack := stingyStack{udp.NewNetwork().Host(loopback.Addr(), open.Addr()), c.sizes}
			cfg := Config{Stack: stack, Workers: 1, ReceiveBuffer: c.buffer, Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}}
			for a := range c.sizes {
				cfg.Listen = append(cfg.Listen, a.String())
			}
			log := start(t, cfg).log.String()
			n := strings.Count(log, "smaller receive buffers")
			if c.want == "" {
				if n != 0 {
					t.Errorf("the log says\n%s", log)
				}
				return
			}
			setting := "set " + udp.ReadBufferSetting + " to at least "
			if n != 1 || !strings.Contains(log, c.want) || !strings.Contains(log, setting) {
				t.Errorf("the log says\n%s\nwant %q once", log, c.want)
			}
		})
	}
}
