package weir

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

// startSteering follows advice to change a socket's port. It is called with the
// lock held, and searches for the port without it.
func (c *Client) startSteering(id core.SocketID) {
	for f := range c.links {
		if s := c.links[f].current; s != nil && s.id == id && !c.closed {
			c.wg.Go(func() { c.steer(family(f), s) })
		}
	}
}

// steer replaces the current socket of a family: the replacement is bound and
// being read, then new sends leave from it, and the old one drains beside it
// until every request sent from it has ended. If no port is free, the old one
// stays.
func (c *Client) steer(f family, old *socket) {
	conn, err := udp.ListenNext(searched{c.stack, c.ctx}, old.conn.LocalAddr(), c.socketOptions())
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	switch {
	case c.closed && err == nil:
		conn.Close()
	case c.closed:
	case err != nil:
		c.counts.steeringFailures++
		c.core.Rebound(now, old.id, old.id)
		c.log(slog.LevelWarn, "weir: a server advised another source port, and none could be had; the old one stays", slog.Any("error", err))
	default:
		c.counts.rebinds++
		s := c.adopt(conn)
		c.links[f].current = s
		c.core.Rebound(now, old.id, s.id)
		ob.retired = append(ob.retired, old)
	}
	c.settle(now, ob)
	c.mu.Unlock()
	c.flush(ob)
}

// searched is a stack on which the search for a port, which may try thousands,
// ends with the client.
type searched struct {
	udp.Stack
	client context.Context
}

func (s searched) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if err := s.client.Err(); err != nil {
		return nil, err
	}
	return s.Stack.Listen(addr, o)
}
