package relay

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/sim"
)

// A delay counts from when the machine took the datagram in, not from when it was read.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for received, want := range map[int64]time.Time{
			0: now,
			now.Add(-5 * time.Millisecond).UnixNano(): now.Add(-5 * time.Millisecond),
			now.Add(time.Millisecond).UnixNano():      now, // the clock was set
			now.Add(-time.Minute).UnixNano():          now,
		} {
			if got := arrival(&udp.Datagram{Received: received}); !got.Equal(want) {
				t.Errorf("received at %d, now %v: arrived %v", received, now, got)
			}
		}
	})
}

// A relay tells how late it was.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := udp.NewNetwork()
		here := n.Host(hereIP)
		for _, tooLong := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
			w := &world{t: t, hosts: [2]udp.Stack{here, here}}
			server, client := w.listen(0, 0), w.listen(0, 0)
			r, err := Start(Config{
				Stack: here, Front: netip.AddrPortFrom(hereIP, 0), Target: server.LocalAddr(),
				Up:    Way{Delay: sim.Constant(5 * time.Millisecond)},
				Sleep: func(d time.Duration) { time.Sleep(d + tooLong) },
			})
			if err != nil {
				t.Fatal(err)
			}
			w.send(client, r.Addr(), "ask")
			w.read(server)
			synctest.Wait()
			s, tooLate := r.Stats(), uint64(0)
			if tooLong > TooLate {
				tooLate = 1
			}
			// Histograms tell three digits apart.
			if (s.LateP99-tooLong).Abs() > tooLong/500 || s.TooLate != tooLate {
				t.Errorf("%v too late counts as %+v", tooLong, s)
			}
			r.Close()
		}
	})
}
