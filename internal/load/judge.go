package load

import (
	"bytes"
	"encoding/binary"

	"github.com/weirhq/weir/ident"
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

// verdict is what a datagram comes to.
type verdict int

const (
	waiting verdict = iota // no answer, or a wrong one: whoever waits goes on waiting, as a client would
	inTime
	tooLate // the slot is free
)

// take judges one datagram that came to a flow. If it is an answer the slot that it frees comes along.
func (j *judge) take(f *flow, d *udp.Datagram, now instant) (slot uint32, v verdict) {
	t := &f.tally
	if wire.ParseEnvelope(d.Payload(), &j.envelope) != nil {
		t.wrong[wrongUnreadable]++
		return 0, waiting
	}
	pdu, err := f.tenant.credential.Open(&j.envelope, &j.scratch)
	if err != nil || wire.ParseResponse(pdu, f.cfg.Work.Layout, &j.view) != nil {
		t.wrong[wrongUnreadable]++
		return 0, waiting
	}
	h := &j.envelope.Header
	slot, serial := binary.LittleEndian.Uint32(h.UniqueID[8:]), binary.LittleEndian.Uint32(h.UniqueID[12:])
	if !bytes.Equal(h.UniqueID[:8], f.prefix[:]) || uint64(slot) >= uint64(f.slots.len()) || serial-1 >= f.slots.all[slot].serial {
		t.wrong[wrongStranger]++
		return 0, waiting
	}
	f.heard = true
	s := &f.slots.all[slot]
	switch {
	case f.server != 0 && ident.ServerID(h.KeyID) != f.server:
		t.wrong[wrongServer]++
		return 0, waiting
	case !s.busy || s.serial != serial:
		t.late++
		return 0, waiting
	}
	numbers := f.slots.numbers(slot)
	if !j.answers(f, numbers) {
		t.wrong[wrongShape]++
		return 0, waiting
	}
	j.move = h.Steering == 0
	granted := j.granted(f)
	if granted {
		for _, n := range numbers {
			f.tenant.granted[n].Add(uint64(f.cfg.Work.Tokens))
		}
	}
	took := now.mono - s.due
	if took > int64(f.cfg.Timeout) {
		f.lose(slot)
		t.late++
		return slot, tooLate
	}
	f.slots.free(slot)
	if s.counts {
		lay, latency := waited(d, now, took), took
		if f.cfg.FromSend {
			latency = now.wallNs - lay - s.sent
		}
		t.count(granted, latency)
		t.waited += lay
		t.together += took
	}
	return slot, inTime
}

// waited is how long an answer lay in the socket, in ns, or 0 where that is not known. Both times are
// of the wall clock, which may be set.
func waited(d *udp.Datagram, now instant, took int64) int64 {
	if d.Received == 0 {
		return 0
	}
	return min(max(0, now.wallNs-d.Received), took)
}

// answers reports whether an answer has the guards and resources that were asked for, in their order.
func (j *judge) answers(f *flow, numbers []uint32) bool {
	w, v := &f.cfg.Work, &j.view
	if v.Guards() != w.Guards || v.Resources() != w.Resources {
		return false
	}
	for i := range w.Guards {
		if v.Guard(i).Tracker != f.work.guards[i].Tracker {
			return false
		}
	}
	for i := range w.Resources {
		if r := v.Resource(i); r.Bucket != bucketID(numbers[i]) || r.Window != w.Window {
			return false
		}
	}
	return true
}

// granted reports whether an answer grants its request. One that does with more in a bucket than its
// limit is wrong, and yet an answer.
func (j *judge) granted(f *flow) bool {
	v := &j.view
	for i := range v.Guards() {
		if g := v.Guard(i); g.Latency >= g.Threshold {
			return false
		}
	}
	most := uint32(0)
	for i := range v.Resources() {
		r := v.Resource(i)
		if r.Tokens != 0 {
			return false
		}
		most = max(most, r.Rate)
	}
	if most > f.cfg.Work.Limit {
		f.tally.wrong[wrongRate]++
	}
	return true
}
