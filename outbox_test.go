package weir

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

// slowConn takes a while for each datagram, of a clock of its own, and fails at the first of a write if it is to.
type slowConn struct {
	udp.Conn
	now   time.Duration
	each  time.Duration
	fails error
	sent  int
}

func (c *slowConn) Write(ds []udp.Datagram) (int, error) {
	for i := range ds {
		c.now += c.each
		if c.fails != nil {
			return i, c.fails
		}
		c.sent++
	}
	return len(ds), nil
}

func (c *slowConn) Close() error { return nil }

// What could not be written in time is not written late, however much there is to write and whatever holds it up:
// servers begin to forget a request at its horizon.
func TestWriteLooksAtTheClock(t *testing.T) {
	full := errors.New("no room")
	for _, test := range []struct {
		fails   error
		sent    int
		refused int
	}{{nil, 128, 0}, {full, 0, 60}} {
		const crowd, horizon = 1000, 60 * time.Millisecond
		conn := &slowConn{each: time.Millisecond, fails: test.fails}
		s, ob := &socket{conn: conn}, &outbox{}
		for i := range crowd {
			s.hold()
			ob.datagrams = append(ob.datagrams, udp.Datagram{})
			ob.posts = append(ob.posts, post{s, horizon, core.SendRef{Round: i}})
		}
		ob.write(func() core.Time { return core.Time{Mono: conn.now} })
		refused, stalled := 0, 0
		for i, f := range ob.failed {
			switch {
			case f.ref.Round != test.sent+i:
				t.Fatalf("datagram %d failed in place of %d", f.ref.Round, test.sent+i)
			case errors.Is(f.err, errStalled):
				stalled++
			case errors.Is(f.err, full):
				refused++
			}
		}
		if conn.sent != test.sent || refused != test.refused || stalled != crowd-test.sent-test.refused {
			t.Errorf("%d datagrams of a millisecond each were sent, %d refused, %d too late", conn.sent, refused, stalled)
		}
		if s.uses.Load() != 0 {
			t.Errorf("the socket has %d uses", s.uses.Load())
		}
	}
}
