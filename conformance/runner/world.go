package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// loopbacks are the addresses at which the first and the second address of a server
// are. Not every machine has all of them.
var loopbacks = [...]netip.Addr{
	netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.AddrFrom4([4]byte{127, 0, 0, 2}), netip.IPv6Loopback(),
}

// errNoAddress says that the machine has no second loopback address.
var errNoAddress = errors.New("this machine has no second loopback address")

// A packet is a datagram that a client sent to a server of a play.
type packet struct {
	server  string
	address int
	from    netip.AddrPort
	at      time.Time
	data    []byte
}

// world is what a client under test finds around it: r-servers that only listen,
// and a DNS server.
type world struct {
	stack   udp.Stack
	conns   map[string][]udp.Conn // by server, a socket for each address
	dns     *dnsServer
	packets chan packet
	done    chan struct{}
	readers sync.WaitGroup
}

func newWorld(stack udp.Stack, t *conformance.Trace) (*world, error) {
	w := &world{
		stack: stack, conns: map[string][]udp.Conn{}, packets: make(chan packet, 1024), done: make(chan struct{}),
	}
	for _, s := range t.Servers {
		conns, err := w.listen(max(1, s.Addresses))
		if err != nil {
			w.close()
			return nil, err
		}
		w.conns[s.Name] = conns
		for i, c := range conns {
			w.readers.Go(func() { w.read(s.Name, i, c) })
		}
	}
	var err error
	if w.dns, err = startDNS(stack, w.endpoints); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// listen binds n addresses with one port, which an SRV record can name.
func (w *world) listen(n int) ([]udp.Conn, error) {
	const attempts = 20
	var err error
	for range attempts {
		var conns []udp.Conn
		var first udp.Conn
		o := udp.Options{Received: true, ReadBuffer: 1 << 18}
		if first, err = w.stack.Listen(netip.AddrPortFrom(loopbacks[0], 0), o); err != nil {
			return nil, fmt.Errorf("cannot listen on loopback: %w", err)
		}
		conns = append(conns, first)
		for _, other := range loopbacks[1:] {
			if len(conns) == n {
				break
			}
			var c udp.Conn
			if c, err = w.stack.Listen(netip.AddrPortFrom(other, first.LocalAddr().Port()), o); err == nil {
				conns = append(conns, c)
			}
		}
		if len(conns) == n {
			return conns, nil
		}
		for _, c := range conns {
			c.Close()
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoAddress, err)
}

// endpoints are the addresses of a server.
func (w *world) endpoints(name string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, c := range w.conns[name] {
		all = append(all, c.LocalAddr())
	}
	return all
}

func (w *world) read(server string, address int, c udp.Conn) {
	for d := range udp.Datagrams(c, wire.MaxDatagram+1) {
		p := packet{server: server, address: address, from: d.Peer, at: time.Now(), data: slices.Clone(d.Payload())}
		if d.Received > 0 {
			// Later than the kernel took it in, by as much as this goroutine was late.
			if late := p.at.Sub(time.Unix(0, d.Received)); late > 0 && late < time.Second {
				p.at = p.at.Add(-late)
			}
		}
		select {
		case w.packets <- p:
		case <-w.done:
			return
		}
	}
}

// send sends a datagram from a server to where a request of the client came from.
func (w *world) send(server string, to netip.AddrPort, b []byte) error {
	conns := w.conns[server]
	i := slices.IndexFunc(conns, func(c udp.Conn) bool { return c.LocalAddr().Addr().Is4() == to.Addr().Is4() })
	if i < 0 {
		return fmt.Errorf("server %s has no address of the client's family", server)
	}
	_, err := conns[i].Write([]udp.Datagram{{Buf: b, N: len(b), Peer: to}})
	return err
}

// close ends all of it. What is sent later is lost.
func (w *world) close() {
	close(w.done)
	for _, conns := range w.conns {
		for _, c := range conns {
			c.Close()
		}
	}
	if w.dns != nil {
		w.dns.close()
	}
	w.readers.Wait()
}
