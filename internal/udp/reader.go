package udp

import (
	"net"
	"net/netip"
	"sync"
)

// reader reads one datagram a system call, on every system.
type reader struct {
	conn  *net.UDPConn
	asked asked
	drops *dropCounter

	mu    sync.Mutex // guards space and drops
	space [controlSpace]byte
}

func (r *reader) read(ds []Datagram) (int, error) {
	d := &ds[0]
	d.Local, d.Received = netip.Addr{}, 0
	var err error
	if r.asked.any() {
		err = r.readControlled(d)
	} else {
		d.N, d.Peer, err = r.conn.ReadFromUDPAddrPort(d.Buf)
	}
	if err != nil {
		if !tooLong(err) {
			return 0, err
		}
		d.N = len(d.Buf)
	}
	return 1, nil
}

// ready reads nothing: the system would wait.
func (r *reader) ready([]Datagram) (int, error) { return 0, nil }

func (r *reader) readControlled(d *Datagram) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n int
	var err error
	d.N, n, _, d.Peer, err = r.conn.ReadMsgUDPAddrPort(d.Buf, r.space[:])
	if err == nil {
		d.take(readControl(r.space[:n]), r.drops)
	}
	return err
}

// take sets what was told beside the datagram.
func (d *Datagram) take(c control, drops *dropCounter) {
	d.Local, d.Received = c.local, c.received
	if c.counted {
		drops.saw(c.drops)
	}
}
