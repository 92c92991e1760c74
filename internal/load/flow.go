package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// flow is one source port's part of a load. Each of its sockets, of which there is one unless a server
// has just asked for another, has a goroutine that reads it.
type flow struct {
	*run
	tenant *tenant
	to     netip.AddrPort
	server ident.ServerID // 0 if any may answer
	prefix [8]byte        // of every identity

	// These belong to the goroutine that asks: in a closed loop to whoever holds mu.
	sealer *wire.Sealer
	random *rand.Rand
	work   composer
	out    []udp.Datagram
	n      int // of out
	told   uint32
	owed   float64 // reports

	mu    sync.Mutex // guards what follows
	conn  udp.Conn   // the current one
	deaf  int64      // ns after the start: until then no advice changes the port
	slots slots
	tally tally
	heard bool // an answer to a question of its own came, however late or wrong
}

// newFlow opens the i-th flow.
func newFlow(r *run, i int) (*flow, error) {
	which := i / len(r.tenants) % len(r.cfg.Targets)
	f := &flow{
		run: r, tenant: r.tenants[i%len(r.tenants)], to: r.cfg.Targets[which],
		random: rand.New(rand.NewPCG(r.cfg.Seed, uint64(i))), out: buffers(r.cfg.batch(), 0, wire.BufferSize),
		slots: newSlots(r.cfg.slots(i), r.cfg.Work.Resources), tally: tally{latency: r.latency[i%len(r.latency)]},
	}
	if r.cfg.Servers != nil {
		f.server = r.cfg.Servers[which]
	}
	var err error
	if f.sealer, err = wire.NewSealer(r.cfg.Entropy); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if _, err := io.ReadFull(r.cfg.Entropy, f.prefix[:]); err != nil {
		return nil, fmt.Errorf("load: drawing identities: %w", err)
	}
	f.work = newComposer(&r.cfg, f.tenant, r.picker)
	local := netip.IPv4Unspecified()
	if f.to.Addr().Is6() && !f.to.Addr().Is4In6() {
		local = netip.IPv6Unspecified()
	}
	f.conn, err = r.cfg.Stack.Listen(netip.AddrPortFrom(local, 0), r.cfg.socketOptions())
	switch {
	case errors.Is(err, syscall.EMFILE):
		return nil, fmt.Errorf("%w; use fewer, or let the process open more files (ulimit -n)", wrongField("Flows", "opening socket %d of %d: %v", i+1, r.cfg.Flows, err))
	case err != nil:
		return nil, fmt.Errorf("load: opening socket %d of %d: %w", i+1, r.cfg.Flows, err)
	}
	return f, nil
}

func (cfg *Config) socketOptions() udp.Options {
	const (
		buffer = 1 << 20
		bursts = 4 // there is one peer
	)
	return udp.Options{Received: true, ReadBuffer: buffer, WriteBuffer: buffer, Bursts: cfg.bursts(), BurstBuffers: bursts}
}

// buffers returns n datagrams with space of a length and a capacity.
func buffers(n, length, capacity int) []udp.Datagram {
	ds, space := make([]udp.Datagram, n), make([]byte, n*capacity)
	for i := range ds {
		at := i * capacity
		ds[i].Buf = space[at : at+length : at+capacity]
	}
	return ds
}

// ask puts a request into the batch that goes out, and what it owes of reports. There is room for it.
func (f *flow) ask(i uint32, due int64, now instant) error {
	s := f.slots.take(i)
	s.due, s.sent, s.counts = due, now.wallNs, f.counts(due)
	h := wire.Header{Timestamp: now.wall()}
	f.identify(&h.UniqueID, i, s.serial)
	request := f.work.request(f.random, f.slots.numbers(i))
	if err := f.add(f.tenant.credential.AppendRequest(f.space(), f.sealer, &h, request)); err != nil {
		return err
	}
	if f.cfg.Replays != nil {
		s.datagram = append(s.datagram[:0], f.out[f.n-1].Buf...)
	}
	if s.counts {
		f.tally.sent++
	}
	if f.cfg.Work.Reports == 0 {
		return nil
	}
	return f.report(&h, s.counts)
}

// report puts the reports that are owed for a request into the batch.
func (f *flow) report(h *wire.Header, counts bool) error {
	for f.owed += f.cfg.Work.Reports; f.owed >= 1; f.owed-- {
		if f.n == len(f.out) {
			f.flush(f.conn)
		}
		f.told++
		f.identify(&h.UniqueID, notASlot, f.told)
		err := f.add(f.tenant.credential.AppendReport(f.space(), f.sealer, h, f.cfg.Work.Layout, f.work.report(f.random)))
		if err != nil {
			return err
		}
		if counts {
			f.tally.reports++
		}
	}
	return nil
}

// notASlot is in the place of a slot's number in the identity of a report.
const notASlot = 1<<32 - 1

func (f *flow) identify(id *wire.UniqueID, slot, serial uint32) {
	copy(id[:], f.prefix[:])
	binary.LittleEndian.PutUint32(id[8:], slot)
	binary.LittleEndian.PutUint32(id[12:], serial)
}

func (f *flow) space() []byte { return f.out[f.n].Buf[:0] }

func (f *flow) add(b []byte, err error) error {
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	d := &f.out[f.n]
	d.Buf, d.N, d.Peer = b, len(b), f.to
	f.n++
	return nil
}

// flush sends the batch. What the system does not take is lost, and comes up as such.
func (f *flow) flush(conn udp.Conn) {
	for out := f.out[:f.n]; len(out) > 0; {
		n, err := conn.Write(out)
		if err == nil {
			break
		}
		f.unsent.Add(1)
		f.refused(err)
		out = out[min(n+1, len(out)):]
	}
	f.n = 0
}
