package core

import (
	"encoding/binary"
	"math/bits"

	"github.com/weirhq/weir/wire"
)

// flightTable finds requests by identity: open addressing with linear probing,
// and deletion by shifting back, so that under steady load nothing is ever
// allocated or rehashed, which a built-in map does now and then. Who chooses the
// keys is our own source of entropy: others can only ask for them, in vain.
type flightTable struct {
	slots []tableSlot // length 0 or a power of two, at most three quarters in use
	used  int
	shift int // 64 - log2(len(slots))
}

type tableSlot struct {
	uid wire.UniqueID
	f   *flight // nil: free
}

// get returns the request of an identity, or nil.
func (t *flightTable) get(uid *wire.UniqueID) *flight {
	if t.used == 0 {
		return nil
	}
	for i := t.home(uid); t.slots[i].f != nil; i = t.after(i) {
		if t.slots[i].uid == *uid {
			return t.slots[i].f
		}
	}
	return nil
}

// put enters a request whose identity is not in the table.
func (t *flightTable) put(f *flight) {
	if t.used >= len(t.slots)/4*3 {
		t.grow()
	}
	t.used++
	t.place(f)
}

// remove takes a request out that is in the table.
func (t *flightTable) remove(f *flight) {
	i := t.home(&f.uid)
	for t.slots[i].f != f {
		i = t.after(i)
	}
	t.used--
	// Close the gap: whatever follows and would be looked for at or before it
	// moves into it, and leaves a gap of its own.
	for j := t.after(i); t.slots[j].f != nil; j = t.after(j) {
		distance := (j - t.home(&t.slots[j].uid)) & (len(t.slots) - 1)
		if distance >= (j-i)&(len(t.slots)-1) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = tableSlot{}
}

func (t *flightTable) place(f *flight) {
	i := t.home(&f.uid)
	for t.slots[i].f != nil {
		i = t.after(i)
	}
	t.slots[i] = tableSlot{f.uid, f}
}

func (t *flightTable) grow() {
	old := t.slots
	t.slots = make([]tableSlot, max(64, 2*len(old)))
	t.shift = 64 - bits.TrailingZeros(uint(len(t.slots)))
	for _, s := range old {
		if s.f != nil {
			t.place(s.f)
		}
	}
}

// home returns where the search for an identity begins. Identities are random,
// but a simulator's may be less so: the multiplication spreads them.
func (t *flightTable) home(uid *wire.UniqueID) int {
	a := binary.LittleEndian.Uint64(uid[:8])
	b := binary.LittleEndian.Uint64(uid[8:])
	return int((a ^ bits.RotateLeft64(b, 32)) * 0x9e3779b97f4a7c15 >> t.shift)
}

func (t *flightTable) after(i int) int { return (i + 1) & (len(t.slots) - 1) }
