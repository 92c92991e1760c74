package sim

import (
	"net/netip"
	"slices"

	"github.com/weirhq/weir/core"
)

// socket is one of a client's. It is closed when it is no longer the current one and no
// undecided request was sent from it.
type socket struct {
	id   core.SocketID
	port uint16
	uses int
}

// The ports that a system gives to a new socket, and those that steering goes through.
const (
	ephemeralFirst = 32768
	ephemeralLast  = 60999
	steeringFirst  = 49152
	steeringLast   = 65535
)

// openSocket makes a socket the current one.
func (w *World) openSocket(c *client, port uint16) *socket {
	c.opened++
	s := &socket{id: c.opened, port: port}
	c.sockets = append(c.sockets, s)
	return s
}

// rebind follows advice to change the port.
func (w *World) rebind(c *client, id core.SocketID) {
	old := c.sockets[len(c.sockets)-1]
	if old.id != id {
		return
	}
	port := old.port
	for {
		if port++; port < steeringFirst { // also behind the last
			port = steeringFirst
		}
		if c.socketAt(port) == nil {
			break
		}
	}
	s := w.openSocket(c, port)
	c.core.Rebound(w.coreTime(c), old.id, s.id)
	c.closeUnused()
	r := w.tell(RecordSteer)
	r.Client, r.Port = c.index, netip.AddrPortFrom(c.addr, port)
	w.hear(r)
}

// socketAt returns the open socket of a port, or nil.
func (c *client) socketAt(port uint16) *socket {
	for _, s := range c.sockets {
		if s.port == port {
			return s
		}
	}
	return nil
}

// closeUnused closes replaced sockets that nobody waits at.
func (c *client) closeUnused() {
	if len(c.sockets) <= 1 {
		return
	}
	current := c.sockets[len(c.sockets)-1]
	c.sockets = slices.DeleteFunc(c.sockets, func(s *socket) bool { return s != current && s.uses == 0 })
}

// sentFrom notes that the request waits for answers at a socket.
func (p *pending) sentFrom(s *socket) {
	if !slices.Contains(p.sockets, s) {
		s.uses++
		p.sockets = append(p.sockets, s)
	}
}

// letGo ends that.
func (p *pending) letGo(c *client) {
	for i, s := range p.sockets {
		s.uses--
		p.sockets[i] = nil
	}
	p.sockets = p.sockets[:0]
	c.closeUnused()
}
