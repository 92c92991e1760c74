package server

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// burstConn is a socket in which datagrams arrive at times that are drawn beforehand. Time is the
// processor time of the thread, so that what else the machine does is not in it, and what a system
// call costs beside. While the worker would wait, it jumps.
type burstConn struct {
	udp.Conn
	arrivals []arrival
	next     int
	skipped  int64 // ns
	due      map[wire.UniqueID]int64
	took     []int64 // ns: from arrival to answer, of those in due
}

type arrival struct {
	at       int64 // ns
	datagram []byte
	watched  bool
}

// What a system call and each of its datagrams cost, about.
const (
	callCost = 500
	readCost = 1000
	sendCost = 1300
)

func (c *burstConn) now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano() + c.skipped
}

// Now is the worker's clock: what came before fades, however long this goes on.
func (c *burstConn) Now() limiter.Time { return timeAt(c.now()) }

// timeAt is after the server has started, whose own millisecond is under its floor.
func timeAt(ns int64) limiter.Time {
	return limiter.Time{Mono: 1_000_001 + ns, Wall: testTime + 1 + uint64(max(0, ns))/1_000_000}
}

func (c *burstConn) Read(ds []udp.Datagram) (int, error) {
	if c.next == len(c.arrivals) {
		return 0, net.ErrClosed
	}
	c.skipped += max(0, c.arrivals[c.next].at-c.now())
	return c.ReadReady(ds)
}

func (c *burstConn) ReadReady(ds []udp.Datagram) (n int, err error) {
	c.skipped += callCost
	for now := c.now(); n < len(ds) && c.next < len(c.arrivals) && c.arrivals[c.next].at <= now; n++ {
		a := &c.arrivals[c.next]
		ds[n].N, ds[n].Peer = copy(ds[n].Buf, a.datagram), peer
		if a.watched {
			c.due[wire.UniqueID(a.datagram[12:28])] = a.at
		}
		c.next++
	}
	c.skipped += readCost * int64(n)
	return n, nil
}

func (c *burstConn) Write(ds []udp.Datagram) (int, error) {
	c.skipped += callCost + sendCost*int64(len(ds))
	now := c.now()
	for i := range ds {
		if at, ok := c.due[wire.UniqueID(ds[i].Buf[12:28])]; ok {
			c.took = append(c.took, now-at)
		}
	}
	return len(ds), nil
}

// BenchmarkNeighbor is how long one tenant's short requests take, a thousand a second to one worker,
// alone and while another tenant sends the largest requests in bursts that keep the worker busy for a
// part of the time. Each iteration is one of the neighbor's requests.
func BenchmarkNeighbor(b *testing.B) {
	const between = 1_000_000 // ns, on average
	for name, burst := range map[string]struct{ datagrams, every int64 }{
		"alone": {}, "bursts of 32, a half": {32, 700_000}, "bursts of 8, a half": {8, 175_000}, "bursts of 32, a quarter": {32, 1_400_000},
	} {
		b.Run(name, func(b *testing.B) {
			n := newNeighborhood(b)
			conn := &burstConn{due: map[wire.UniqueID]int64{}}
			n.w.conn, n.w.clock = conn, conn
			rng := rand.New(rand.NewPCG(1, 2))
			draw := func(mean int64) int64 { return int64(rng.ExpFloat64() * float64(mean)) }
			var at int64
			for range b.N {
				at += draw(between)
				binary.LittleEndian.PutUint64(n.neighbor.header.UniqueID[:], uint64(at)|1<<63) // none of the attacker's
				n.neighbor.header.Timestamp = timeAt(at).Wall
				conn.arrivals = append(conn.arrivals, arrival{at, n.neighbor.request(checkout(0)), true})
			}
			largest := make([]wire.Resource, mostResources)
			for i := range largest {
				largest[i] = wire.Resource{Bucket: numbered(uint32(i)), Window: 1000, Rate: 1, Tokens: 2}
			}
			for start := int64(0); burst.datagrams > 0 && start < at; start += draw(burst.every) {
				n.attacker.header.Timestamp = timeAt(start).Wall
				for i := range burst.datagrams {
					n.attacker.next()
					datagram := n.attacker.request(&wire.Request{Layout: wire.Layout2, DedupTTL: 300, Resources: largest})
					conn.arrivals = append(conn.arrivals, arrival{start + 300*i, datagram, false})
				}
			}
			slices.SortStableFunc(conn.arrivals, func(x, y arrival) int { return int(x.at - y.at) })
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			runtime.GC()
			conn.skipped = -conn.now()
			b.ResetTimer()
			n.w.run(b.Context())
			if len(conn.took) != b.N {
				b.Fatalf("%d of %d are answered: %s", len(conn.took), b.N, drops(n.w))
			}
			slices.Sort(conn.took)
			b.ReportMetric(float64(conn.took[b.N/2])/1000, "p50-us")
			b.ReportMetric(float64(conn.took[b.N*99/100])/1000, "p99-us")
		})
	}
}
