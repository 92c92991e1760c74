package relay

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/precise"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	hereIP  = netip.MustParseAddr("10.0.0.1")
	thereIP = netip.MustParseAddr("10.0.0.2")
)

// world is a relay on one host, and a server and clients on another, in virtual time.
type world struct {
	t      *testing.T
	hosts  [2]udp.Stack
	server udp.Conn
	relay  *Relay
	began  time.Time
}

// play runs f in virtual time with a relay of these ways.
func play(t *testing.T, u, d Way, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := udp.NewNetwork()
		w := &world{t: t, hosts: [2]udp.Stack{n.Host(hereIP), n.Host(thereIP)}, began: time.Now()}
		w.server = w.listen(1, 0)
		var err error
		w.relay, err = Start(Config{
			Stack: w.hosts[0], Front: netip.AddrPortFrom(hereIP, 0), Target: w.server.LocalAddr(), Up: u, Down: d, Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.relay.Close()
		f(w)
	})
}

// listen opens a socket that is closed at the end.
func (w *world) listen(host int, port uint16) udp.Conn {
	w.t.Helper()
	c, err := w.hosts[host].Listen(netip.AddrPortFrom([]netip.Addr{hereIP, thereIP}[host], port), udp.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends and waits until everybody has done what they can at this instant.
func (w *world) send(from udp.Conn, to netip.AddrPort, text string) {
	w.t.Helper()
	ds := []udp.Datagram{{Buf: []byte(text), N: len(text), Peer: to}}
	if n, err := from.Write(ds); n != 1 || err != nil {
		w.t.Fatalf("Write = %d, %v", n, err)
	}
	synctest.Wait()
}

// read returns the next datagram, its sender, and when it came.
func (w *world) read(c udp.Conn) (text string, peer netip.AddrPort, at time.Duration) {
	w.t.Helper()
	ds := []udp.Datagram{{Buf: make([]byte, maxDatagram)}}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(ds); err != nil {
		w.t.Fatalf("nothing came: %v", err)
	}
	return string(ds[0].Payload()), ds[0].Peer, time.Since(w.began)
}

// none holds that nothing more comes.
func (w *world) none(c udp.Conn) {
	w.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if c.Pending() {
		text, _, _ := w.read(c)
		w.t.Errorf("%q came", text)
	}
}

// Each datagram takes its way's delay, to the instant, and answers come from where was asked.
func TestDelay(t *testing.T) {
	play(t, Way{Delay: sim.Constant(5 * time.Millisecond)}, Way{Delay: sim.Constant(7 * time.Millisecond)}, func(w *world) {
		client := w.listen(1, 0)
		for i, text := range []string{"one", "two"} {
			w.send(client, w.relay.Addr(), text)
			got, flow, at := w.read(w.server)
			if want := time.Duration(i)*12*time.Millisecond + 5*time.Millisecond; got != text || at != want {
				t.Errorf("the server got %q after %v, not %q after %v", got, at, text, want)
			}
			w.send(w.server, flow, "re: "+text)
			got, from, at := w.read(client)
			if want := time.Duration(i+1) * 12 * time.Millisecond; got != "re: "+text || at != want || from != w.relay.Addr() {
				t.Errorf("the client got %q from %v after %v; the relay is %v", got, from, at, w.relay.Addr())
			}
		}
		if s := w.relay.Stats(); s != (Stats{Up: Count{Sent: 2}, Down: Count{Sent: 2}}) {
			t.Errorf("counted %+v", s)
		}
	})
}

// What is due sooner leaves first, though it came later and the relay waits for the other; of what
// is due at once, what came first.
func TestOvertakes(t *testing.T) {
	play(t, Way{Delay: sim.Constant(9 * time.Millisecond)}, Way{}, func(w *world) {
		client := w.listen(1, 0)
		w.send(client, w.relay.Addr(), "slow")
		time.Sleep(time.Millisecond)
		w.relay.SetWays(Way{Delay: sim.Constant(3 * time.Millisecond)}, Way{})
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprint(i))
			w.send(client, w.relay.Addr(), want[i])
		}
		want = append(want, "slow")
		for i, text := range want {
			got, _, at := w.read(w.server)
			if due := 4 * time.Millisecond; got != text || i < 10 && at != due {
				t.Errorf("datagram %d is %q after %v", i, got, at)
			}
		}
		if at := time.Since(w.began); at != 9*time.Millisecond {
			t.Errorf("the slow one came after %v", at)
		}
	})
}

// Each port of a client is a flow of its own at the server, always the same, and answers find it.
func TestFlows(t *testing.T) {
	play(t, Way{}, Way{}, func(w *world) {
		a, b := w.listen(1, 50001), w.listen(1, 50002)
		flows := map[udp.Conn]netip.AddrPort{}
		for range 3 {
			for _, c := range []udp.Conn{a, b} {
				w.send(c, w.relay.Addr(), "ask")
				_, flow, _ := w.read(w.server)
				if known, ok := flows[c]; ok && known != flow {
					t.Errorf("one port is flow %v, then %v", known, flow)
				}
				flows[c] = flow
			}
		}
		if flows[a] == flows[b] {
			t.Fatalf("two ports are one flow, %v", flows[a])
		}
		w.send(w.server, flows[b], "to b")
		w.send(w.server, flows[a], "to a")
		for c, want := range map[udp.Conn]string{a: "to a", b: "to b"} {
			if got, _, _ := w.read(c); got != want {
				t.Errorf("%q went wrong: %q came", want, got)
			}
		}
	})
}

// A cut loses what comes while it lasts, each way by itself, and not what is under way.
func TestCut(t *testing.T) {
	const takes = 5 * time.Millisecond
	play(t, Way{Delay: sim.Constant(takes)}, Way{Delay: sim.Constant(takes)}, func(w *world) {
		client := w.listen(1, 0)
		w.send(client, w.relay.Addr(), "under way")
		w.relay.Cut(true, false)
		w.send(client, w.relay.Addr(), "cut")
		got, flow, _ := w.read(w.server)
		if got != "under way" {
			t.Errorf("%q came", got)
		}
		w.send(w.server, flow, "answer")
		if got, _, _ := w.read(client); got != "answer" {
			t.Errorf("%q came", got)
		}
		w.none(w.server)
		w.relay.Cut(false, true)
		w.send(client, w.relay.Addr(), "healed")
		if got, _, _ := w.read(w.server); got != "healed" {
			t.Errorf("%q came", got)
		}
		w.send(w.server, flow, "cut")
		w.none(client)
		if s := w.relay.Stats(); s.Up.Cut != 1 || s.Down.Cut != 1 || s.Up.Sent != 2 || s.Down.Sent != 1 {
			t.Errorf("counted %+v", s)
		}
	})
}

// Of many datagrams about the share is lost that was asked for, the same under the same seed.
func TestLoss(t *testing.T) {
	const many = 2000
	var runs [2][]string
	for i := range runs {
		play(t, Way{Loss: 100_000}, Way{}, func(w *world) {
			client := w.listen(1, 0)
			for n := range many {
				w.send(client, w.relay.Addr(), fmt.Sprint(n))
			}
			for w.server.Pending() {
				got, _, _ := w.read(w.server)
				runs[i] = append(runs[i], got)
			}
			if s := w.relay.Stats().Up; s.Lost < 140 || s.Lost > 260 || s.Lost+s.Sent != many || s.Sent != uint64(len(runs[i])) {
				t.Errorf("counted %+v of %d, and %d came", s, many, len(runs[i]))
			}
		})
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Error("the same seed loses others")
	}
}

// A server that moves is found by later datagrams.
func TestTarget(t *testing.T) {
	play(t, Way{}, Way{}, func(w *world) {
		client, next := w.listen(1, 0), w.listen(1, 0)
		w.send(client, w.relay.Addr(), "first")
		_, flow, _ := w.read(w.server)
		w.relay.SetTarget(next.LocalAddr())
		w.send(client, w.relay.Addr(), "second")
		if got, again, _ := w.read(next); got != "second" || again != flow {
			t.Errorf("%q came by flow %v, not %v", got, again, flow)
		}
		w.none(w.server)
	})
}

// A relay that is closed is quiet, at once and for good, and its ports are free.
func TestClose(t *testing.T) {
	play(t, Way{Delay: sim.Constant(time.Hour)}, Way{}, func(w *world) {
		client := w.listen(1, 0)
		w.send(client, w.relay.Addr(), "under way")
		w.relay.Close()
		w.relay.Close()
		if ports := w.hosts[0].(*udp.NetworkHost).Ports(); len(ports) != 0 {
			t.Errorf("ports %v are still bound", ports)
		}
	})
}

// A system that has no socket left for a flow costs that flow's datagrams.
func TestNoSocket(t *testing.T) {
	play(t, Way{}, Way{}, func(w *world) {
		w.relay.stack = refusing{w.relay.stack}
		w.send(w.listen(1, 0), w.relay.Addr(), "ask")
		w.none(w.server)
		if s := w.relay.Stats().Up; s != (Count{Unsent: 1}) {
			t.Errorf("counted %+v", s)
		}
	})
}

type refusing struct{ udp.Stack }

func (refusing) Listen(netip.AddrPort, udp.Options) (udp.Conn, error) {
	return nil, errors.New("no sockets")
}

func TestStartRefuses(t *testing.T) {
	front := netip.MustParseAddrPort("127.0.0.1:0")
	if _, err := Start(Config{Front: front, Up: Way{Delay: sim.Uniform(2, 1)}}); err == nil {
		t.Error("a delay from 2 to 1 is taken")
	}
	r, err := Start(Config{Front: front})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := Start(Config{Front: r.Addr()}); !udp.InUse(err) {
		t.Errorf("a front that is taken: %v", err)
	}
}

// On this machine's sockets datagrams go there and back, and none before it is due.
func TestHost(t *testing.T) {
	listen := func() udp.Conn {
		c, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	w := &world{t: t, began: time.Now()}
	server, client := listen(), listen()
	const takes = 3 * time.Millisecond
	way := Way{Delay: sim.Constant(takes)}
	r, err := Start(Config{
		Front: netip.MustParseAddrPort("127.0.0.1:0"), Target: server.LocalAddr(), Up: way, Down: way, Sleep: precise.Sleep,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ask := []udp.Datagram{{Buf: []byte("ask"), N: 3, Peer: r.Addr()}}
	if _, err := client.Write(ask); err != nil {
		t.Fatal(err)
	}
	got, flow, at := w.read(server)
	if got != "ask" || at < takes {
		t.Errorf("%q came after %v", got, at)
	}
	if _, err := server.Write([]udp.Datagram{{Buf: []byte("yes"), N: 3, Peer: flow}}); err != nil {
		t.Fatal(err)
	}
	got, _, at = w.read(client)
	if got != "yes" || at < 2*takes {
		t.Errorf("%q came after %v", got, at)
	}
}
