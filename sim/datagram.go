package sim

import (
	"time"

	"github.com/weirhq/weir/core"
)

// datagram is a datagram on its way, in a queue, or an answer on its way back.
type datagram struct {
	client, server int32 // server is -1 for an address where nobody is
	request        uint64
	luck           uint64 // names it in draws
	kind           core.SendKind
	copy           uint8
	answer         bool
	granted, keep  bool // of an answer
	port           uint16
	arrived        time.Duration // in a receive queue
	payload        []byte
}

// datagrams are reused, with the memory that their payloads have.
type datagrams struct {
	free []*datagram
	made int
}

func (p *datagrams) get() *datagram {
	if n := len(p.free); n > 0 {
		d := p.free[n-1]
		p.free = p.free[:n-1]
		return d
	}
	p.made++
	return new(datagram)
}

func (p *datagrams) put(d *datagram) {
	*d = datagram{payload: d.payload[:0]}
	p.free = append(p.free, d)
}
