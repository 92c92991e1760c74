package load

import (
	"bytes"
	"encoding/binary"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// judge looks at what comes in. It belongs to one goroutine.
type judge struct {
	envelope wire.Envelope
	scratch  wire.Scratch
	view     wire.ResponseView
	move     bool // the last answer asks for another port
}

// take judges one datagram that came to a flow, and returns the slot that it frees.
func (j *judge) take(f *flow, d *udp.Datagram, now instant) (slot uint32, ok bool) {
	j.move = false
	t := &f.tally
	if wire.ParseEnvelope(d.Payload(), &j.envelope) != nil {
		t.wrong[wrongUnreadable]++
		return 0, false
	}
	pdu, err := f.tenant.credential.Open(&j.envelope, &j.scratch)
	if err != nil || wire.ParseResponse(pdu, f.cfg.Work.Layout, &j.view) != nil {
		t.wrong[wrongUnreadable]++
		return 0, false
	}
	id := &j.envelope.Header.UniqueID
	slot, serial := binary.LittleEndian.Uint32(id[8:]), binary.LittleEndian.Uint32(id[12:])
	if !bytes.Equal(id[:8], f.prefix[:]) || uint64(slot) >= uint64(len(f.slots)) || serial-1 >= f.slots[slot].serial {
		t.wrong[wrongStranger]++
		return 0, false
	}
	s := &f.slots[slot]
	if !s.busy || s.serial != serial {
		t.late++
		return 0, false
	}
	j.move = j.envelope.Header.Steering == 0
	granted, tokens := j.verdict(f, s)
	if granted {
		for _, n := range s.numbers {
			f.tenant.granted[n].Add(tokens)
		}
	}
	took := now.mono - s.due
	if took > int64(f.cfg.Timeout) {
		f.lose(s)
		t.late++
		return slot, true
	}
	s.busy = false
	if now.mono >= f.begin && now.mono < f.end.Load() {
		f.answered.Add(1)
	}
	if f.counts(s.due) {
		t.count(granted, took, waited(d, now, took))
	}
	return slot, true
}

// waited is how long an answer lay in the socket, in ns, or 0 where that is not known. Both times are
// of the wall clock, which may be set.
func waited(d *udp.Datagram, now instant, took int64) int64 {
	if d.Received == 0 {
		return 0
	}
	return min(max(0, now.wallNs-d.Received), took)
}

// verdict holds an answer against its request, and tells whether that is granted, and each of its
// resources the tokens.
func (j *judge) verdict(f *flow, s *slot) (granted bool, tokens uint64) {
	w, v := &f.cfg.Work, &j.view
	if v.Guards() != w.Guards || v.Resources() != w.Resources {
		f.tally.wrong[wrongShape]++
		return false, 0
	}
	granted = true
	for i := range v.Guards() {
		g := v.Guard(i)
		if g.Tracker != f.work.guards[i].Tracker {
			f.tally.wrong[wrongShape]++
			return false, 0
		}
		granted = granted && g.Latency < g.Threshold
	}
	for i := range v.Resources() {
		r := v.Resource(i)
		if r.Bucket != bucketID(s.numbers[i]) || r.Window != w.Window {
			f.tally.wrong[wrongShape]++
			return false, 0
		}
		granted = granted && r.Tokens == 0
	}
	for i := range v.Resources() {
		if granted && v.Resource(i).Rate > w.Limit {
			f.tally.wrong[wrongRate]++
			break
		}
	}
	return granted, uint64(w.Tokens)
}
