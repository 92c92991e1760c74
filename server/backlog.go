package server

import (
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// A datagram of more than longBytes can be many times the work of others: the largest request costs
// as much as ten for one token. A burst of them would hold up everybody whose datagrams are behind it
// in the socket. So a worker takes datagrams out of the socket faster than it decides them, decides
// short ones first, and of long ones longAtOnce between two looks at the socket. Both kinds keep
// their order. Long ones are decided all the same while short ones keep coming, four to a batch; when
// backlogSize of them wait, nothing more is taken out.
const (
	longBytes   = 512
	longAtOnce  = 4
	backlogSize = 256
)

// backlog holds the long datagrams that a worker has taken out of its socket and not decided yet,
// first come first. Its space is its own.
type backlog struct {
	ring  [backlogSize]waiting
	first int
	n     int
}

// waiting is a datagram in a backlog.
type waiting struct {
	udp.Datagram
	read int64 // ns: when it was taken out of the socket
}

func newBacklog() *backlog {
	b := new(backlog)
	for i := range b.ring {
		b.ring[i].Buf = make([]byte, wire.MaxDatagram+1)
	}
	return b
}

// put takes a datagram over. In exchange, d gets other space. There is room.
func (b *backlog) put(d *udp.Datagram, now limiter.Time) {
	w := &b.ring[(b.first+b.n)%backlogSize]
	w.Datagram, *d = *d, w.Datagram
	w.read = now.Mono
	b.n++
}

// next returns the first, which is gone from then on; it is valid until the next put.
func (b *backlog) next() *waiting {
	w := &b.ring[b.first]
	b.first = (b.first + 1) % backlogSize
	b.n--
	return w
}

// room returns how many more may be put.
func (b *backlog) room() int { return backlogSize - b.n }
