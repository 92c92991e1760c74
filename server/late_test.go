package server

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
)

// A request that lay in the socket longer than its dedup TTL is dropped unseen: its
// identity can be executed later. Times that cannot be are no reason.
func TestLate(t *testing.T) {
	const ttl = 60
	for _, c := range []struct {
		name   string
		waited int64 // ms; the system may not have told
		told   bool
		late   bool
	}{
		{"not told", 0, false, false},
		{"as long as its TTL", ttl, true, false},
		{"a ms longer", ttl + 1, true, true},
		{"a minute", 60_000, true, true},
		{"more than a minute", 60_001, true, false},
		{"from the future", -1, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newDropBench(t)
			datagram := b.aes.request(checkout(1))
			now := b.clock.Now()
			in := udp.Datagram{Buf: datagram, N: len(datagram), Peer: peer}
			if c.told {
				in.Received = (int64(now.Wall) - c.waited) * 1_000_000
			}
			answer := b.handle(now, &in)
			want := "map[]"
			if c.late {
				want = "map[late:1]"
			}
			if got := drops(b.worker); got != want || (answer == nil) != c.late {
				t.Errorf("answered: %v, counted %s", answer != nil, got)
			}
			if c.late && b.ask(datagram) == nil {
				t.Errorf("what was dropped as late is remembered: %s", drops(b.worker))
			}
		})
	}
	// A request without a TTL is not late.
	mute := newDropBench(t)
	request := mute.none.request(checkout(1))
	clear(request[48:52]) // the dedup TTL
	now := mute.clock.Now()
	mute.handle(now, &udp.Datagram{Buf: request, N: len(request), Peer: peer, Received: (int64(now.Wall) - 1) * 1_000_000})
	if got := drops(mute.worker); got != "map[ttl:1]" {
		t.Errorf("a request without a dedup TTL that waited for 1 ms: %s", got)
	}
	// A report has no TTL, and none that waits for it.
	b := newDropBench(t)
	report := b.aes.report(observation(1))
	b.handle(b.clock.Now(), &udp.Datagram{
		Buf: report, N: len(report), Peer: peer, Received: (int64(b.clock.Now().Wall) - 30_000) * 1_000_000,
	})
	if got := drops(b.worker); got != "map[]" {
		t.Errorf("a report that waited for 30 s: %s", got)
	}
}

// The system tells when a datagram came in, and so what waits before a worker is there
// is late.
func TestLateInARealSocket(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	s := &Server{settings: &settings{Config: Config{Clock: systemClock{origin: time.Now().Add(-time.Hour)}}}}
	s.settings.fill()
	conn, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), s.socketOptions())
	if err != nil {
		t.Fatal(err)
	}
	before := &fakeClock{now: limiter.Time{Mono: 1, Wall: s.settings.Clock.Now().Wall - 5000}}
	w := newWorker(t, before, workerRules(), Tenant{Keys: []apikey.Key{key}})
	w.clock, w.conn = s.settings.Clock, conn
	c := newClient(t, key)
	client, err := net.Dial("udp", conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	awaitStamps(t, client, conn)
	// The timestamp says that the client's clock is ahead, so that only the wait counts.
	c.header.Timestamp = s.settings.Clock.Now().Wall + 1000
	q := checkout(1)
	q.DedupTTL = 5
	if _, err := client.Write(c.request(q)); err != nil {
		t.Fatal(err)
	}
	for sent := time.Now(); time.Since(sent) < 20*time.Millisecond; {
		time.Sleep(time.Millisecond)
	}
	var running sync.WaitGroup
	running.Go(func() { w.run(context.Background()) })
	defer running.Wait()
	defer conn.Close()
	// One that does not wait is answered, and by then the first has been judged.
	q.DedupTTL = 300
	buf := make([]byte, 2048)
	for try := range 30 { // a machine with too few processors may make it wait, too
		c.next()
		if _, err := client.Write(c.request(q)); err != nil {
			t.Fatal(err)
		}
		if err := client.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err = client.Read(buf); err == nil {
			break
		}
		if try == 29 {
			t.Fatalf("%v; dropped: %s", err, drops(w))
		}
	}
	if dropCounts(w)["late"] == 0 {
		if runtime.GOOS != "linux" {
			t.Skip("this system does not tell when a datagram came in")
		}
		t.Errorf("counted %s", drops(w))
	}
}

// awaitStamps waits until the system stamps datagrams as they come in. The first socket of
// a machine that asks for it gets it a moment later, and the times of reading until then.
func awaitStamps(t *testing.T, client net.Conn, conn udp.Conn) {
	t.Helper()
	ds := []udp.Datagram{{Buf: make([]byte, 16)}}
	for range 1000 {
		if _, err := client.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // it waits in the socket
		if _, err := conn.Read(ds); err != nil {
			t.Fatal(err)
		}
		if time.Now().UnixNano()-ds[0].Received > int64(4*time.Millisecond) {
			return // or, where nothing is told, 50 years
		}
	}
	t.Fatal("the system tells when datagrams are read, not when they come")
}

// Only the machine's own clock can be compared with what the system tells.
func TestReceiveTimesNeedTheMachinesClock(t *testing.T) {
	for clock, want := range map[Clock]bool{systemClock{}: true, fixedClock{}: false} {
		s := &Server{settings: &settings{Config: Config{Clock: clock}}}
		s.settings.fill()
		if got := s.socketOptions().Received; got != want {
			t.Errorf("%T: %v", clock, got)
		}
	}
}

type fixedClock struct{}

func (fixedClock) Now() limiter.Time { return limiter.Time{} }
