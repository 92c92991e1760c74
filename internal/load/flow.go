package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// batch is how many datagrams a flow moves in one system call at most.
const batch = 64

// tick is how often a flow that hears nothing looks at the time.
const tick = 20 * time.Millisecond

// flow is one source port's part of a load. Each of its sockets, of which there is one unless a server
// has just asked for another, has a goroutine that reads it.
type flow struct {
	*run
	tenant *tenant
	to     netip.AddrPort
	prefix [8]byte // of every identity

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
	slots []slot
	next  uint32 // slot, in an open loop
	tally tally
}

// slot is a place for one request in flight.
type slot struct {
	serial  uint32 // counts those that were here
	busy    bool
	due     int64 // ns after the start: when it was to be sent
	numbers []uint32
}

// newFlow opens the i-th flow.
func newFlow(r *run, i, slots int) (*flow, error) {
	f := &flow{
		run: r, tenant: r.tenants[i%len(r.tenants)], to: r.cfg.Targets[i/len(r.tenants)%len(r.cfg.Targets)],
		random: rand.New(rand.NewPCG(r.cfg.Seed, uint64(i))), out: make([]udp.Datagram, batch), slots: make([]slot, slots),
		tally: newTally(),
	}
	var err error
	if f.sealer, err = wire.NewSealer(r.cfg.Entropy); err != nil {
		return nil, err
	}
	if _, err := r.cfg.Entropy.Read(f.prefix[:]); err != nil {
		return nil, fmt.Errorf("load: no randomness: %w", err)
	}
	f.work = newComposer(&r.cfg, f.tenant, r.picker)
	for i := range f.out {
		f.out[i].Buf = make([]byte, 0, wire.BufferSize)
	}
	numbers := make([]uint32, slots*r.cfg.Work.Resources)
	for i := range f.slots {
		f.slots[i].numbers, numbers = numbers[:r.cfg.Work.Resources:r.cfg.Work.Resources], numbers[r.cfg.Work.Resources:]
	}
	local := netip.IPv4Unspecified()
	if f.to.Addr().Is6() && !f.to.Addr().Is4In6() {
		local = netip.IPv6Unspecified()
	}
	f.conn, err = r.cfg.Stack.Listen(netip.AddrPortFrom(local, 0), socketOptions())
	if err != nil {
		return nil, fmt.Errorf("load: opening socket %d of %d: %w", i+1, r.cfg.Flows, err)
	}
	return f, nil
}

func socketOptions() udp.Options {
	const buffer = 1 << 20
	return udp.Options{Received: true, ReadBuffer: buffer, WriteBuffer: buffer}
}

// ask puts a request into the batch that goes out, and what it owes of reports. There is room for it.
func (f *flow) ask(i uint32, due int64, now instant) error {
	s := &f.slots[i]
	s.serial++
	s.busy, s.due = true, due
	h := wire.Header{Timestamp: now.wall}
	f.identify(&h.UniqueID, i, s.serial)
	request := f.work.request(f.random, s.numbers)
	if err := f.add(f.tenant.credential.AppendRequest(f.space(), f.sealer, &h, request)); err != nil {
		return err
	}
	if f.counts(due) {
		f.tally.sent++
	}
	for f.owed += f.cfg.Work.Reports; f.owed >= 1; f.owed-- {
		if f.n == len(f.out) {
			f.flush()
		}
		f.told++
		f.identify(&h.UniqueID, notASlot, f.told)
		err := f.add(f.tenant.credential.AppendReport(f.space(), f.sealer, &h, f.cfg.Work.Layout, f.work.report(f.random)))
		if err != nil {
			return err
		}
		if f.counts(due) {
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
func (f *flow) flush() { f.flushTo(f.conn) }

func (f *flow) flushTo(conn udp.Conn) {
	for out := f.out[:f.n]; len(out) > 0; {
		n, err := conn.Write(out)
		if err == nil {
			break
		}
		f.unsent.Add(1)
		out = out[min(n+1, len(out)):]
	}
	f.n = 0
}

// read takes answers until the run is over, or this socket is not the flow's any more.
func (f *flow) read(conn udp.Conn) {
	defer conn.Close()
	in := make([]udp.Datagram, batch)
	for i := range in {
		in[i].Buf = make([]byte, wire.MaxDatagram+1)
	}
	var j judge
	var wake, leave int64
	for {
		now := f.now()
		if now.mono >= wake {
			if !f.look(conn, now, &leave) {
				return
			}
			wake = now.mono + int64(tick)
			_ = conn.SetReadDeadline(f.start.Add(time.Duration(wake)))
		}
		n, err := conn.Read(in)
		if udp.Closed(err) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			f.unread.Add(1) // such as an ICMP message: nobody is there
			continue
		}
		if n > 0 {
			f.took(&j, in[:n])
		}
	}
}

// took takes a batch of answers. In a closed loop others are asked in their place.
func (f *flow) took(j *judge, in []udp.Datagram) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	move := false
	for k := range in {
		i, ok := j.take(f, &in[k], now)
		move = move || j.move
		if ok && f.cfg.Rate == 0 && now.mono < f.end.Load() {
			f.again(i, now)
		}
	}
	if f.cfg.Rate == 0 {
		f.flush()
	}
	if move && f.cfg.Steer && now.mono < f.end.Load() {
		f.steer()
	}
}

// again asks once more in a slot, in a closed loop.
func (f *flow) again(i uint32, now instant) {
	if f.n == len(f.out) {
		f.flush()
	}
	if err := f.ask(i, now.mono, now); err != nil {
		f.fail(err)
	}
}

// steer moves to the next port. The old socket is read for one timeout more.
func (f *flow) steer() {
	conn, err := udp.ListenNext(f.cfg.Stack, f.conn.LocalAddr(), socketOptions())
	if err != nil {
		return // every port is taken; as clients do, it stays
	}
	f.moves.Add(1)
	f.conn = conn
	f.readers.Go(func() { f.read(conn) })
}

// look gives up what is lost, and reports whether this socket is to be read on.
func (f *flow) look(conn udp.Conn, now instant, leave *int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if conn != f.conn {
		if *leave == 0 {
			*leave = now.mono + int64(f.cfg.Timeout)
		}
		return now.mono < *leave
	}
	waits := false
	for i := range f.slots {
		s := &f.slots[i]
		switch {
		case !s.busy:
		case now.mono-s.due <= int64(f.cfg.Timeout):
			waits = true
		default:
			f.lose(s)
			if f.cfg.Rate == 0 && now.mono < f.end.Load() {
				f.again(uint32(i), now)
			}
		}
	}
	if f.cfg.Rate == 0 {
		f.flush()
	}
	return now.mono < f.end.Load() || waits
}

// lose gives up a request.
func (f *flow) lose(s *slot) {
	s.busy = false
	if f.counts(s.due) {
		f.tally.lost++
		f.tally.latency.record(int64(f.cfg.Timeout))
	}
}
