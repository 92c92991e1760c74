package storm

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// longest is how long a mutation makes an argument at most: a few of our datagrams.
const longest = 4096

// interesting are the numbers at which code goes wrong. Each also stands for its lower bits.
var interesting = [...]uint64{
	0, 1, 2, 3, 4, 7, 8, 12, 16, 28, 31, 32, 36, 40, 63, 64, 100, 127, 128, 255, 256, 1000, 1024, 1200, 4096,
	1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1,
}

// mutator makes inputs out of others. What it makes is valid until the next.
type mutator struct {
	inputs []input
	kinds  []kind
	fields Fields

	source *rand.PCG
	rng    *rand.Rand
	in     input
	at     []int
	spare  []byte
}

func newMutator(inputs []input, kinds []kind, fields Fields) *mutator {
	source := new(rand.PCG)
	return &mutator{inputs: inputs, kinds: kinds, fields: fields, source: source, rng: rand.New(source), in: make(input, len(kinds))}
}

// input returns the input of an execution. The first are what there is to mutate, as it is.
func (m *mutator) input(seed, index uint64) input {
	m.source.Seed(seed, index)
	from, steps := int(min(index, uint64(len(m.inputs)))), 0
	if from == len(m.inputs) {
		from, steps = m.rng.IntN(len(m.inputs)), 1+m.rng.IntN(1<<m.rng.IntN(5))
	}
	for i, b := range m.inputs[from] {
		if steps > 0 {
			b = b[:min(len(b), longest)]
		}
		m.in[i] = append(m.in[i][:0], b...)
	}
	for range steps {
		m.step()
	}
	return m.in
}

// step changes one argument in one way.
func (m *mutator) step() {
	i := 0
	if len(m.kinds) > 1 && m.rng.IntN(4) == 0 {
		i = m.rng.IntN(len(m.kinds))
	}
	if m.kinds[i].width > 0 {
		m.number(m.in[i])
		return
	}
	if m.fields != nil && i == 0 && m.rng.IntN(4) == 0 {
		m.in[i] = m.length(m.in[i])
		return
	}
	m.in[i] = m.bytes(m.in[i], i)
}

// number changes an argument of fixed length.
func (m *mutator) number(b []byte) {
	switch m.rng.IntN(4) {
	case 0:
		b[m.rng.IntN(len(b))] ^= 1 << m.rng.IntN(8)
	case 1:
		m.put(b, interesting[m.rng.IntN(len(interesting))])
	case 2:
		m.put(b, m.rng.Uint64())
	default:
		var w [8]byte
		copy(w[:], b)
		m.put(b, binary.LittleEndian.Uint64(w[:])+m.small())
	}
}

// bytes changes an argument of any length, the i-th.
func (m *mutator) bytes(b []byte, i int) []byte {
	if len(b) == 0 {
		return m.insert(b)
	}
	at := m.rng.IntN(len(b))
	switch m.rng.IntN(12) {
	case 0, 1:
		b[at] ^= 1 << m.rng.IntN(8)
	case 2:
		b[at] = byte(m.rng.Uint32())
	case 3, 4:
		m.integer(b[at:])
	case 5:
		return m.insert(b)
	case 6:
		return slices.Delete(b, at, m.end(b, at))
	case 7: // a piece of it, once more
		m.spare = append(m.spare[:0], b[at:m.end(b, at)]...)
		return m.insertAt(b, m.rng.IntN(len(b)+1), m.spare)
	case 8: // another's piece over its own
		other := m.inputs[m.rng.IntN(len(m.inputs))][i]
		from := m.rng.IntN(len(other) + 1)
		copy(b[at:], other[from:m.end(other, from)])
	case 9: // its head, another's tail
		other := m.inputs[m.rng.IntN(len(m.inputs))][i]
		from := m.rng.IntN(len(other) + 1)
		return m.insertAt(b[:at], at, other[from:])
	case 10:
		other := m.inputs[m.rng.IntN(len(m.inputs))][i]
		from := m.rng.IntN(len(other) + 1)
		return m.insertAt(b, at, other[from:m.end(other, from)])
	default:
		return b[:at]
	}
	return b
}

// integer writes a number of 1, 2, 4 or 8 bytes over the beginning of b, in either byte order: an
// interesting one, or what stood there and a little.
func (m *mutator) integer(b []byte) {
	var w [8]byte
	width := 1 << m.rng.IntN(4)
	for width > len(b) {
		width /= 2
	}
	b = b[:width]
	reversed := m.rng.IntN(2) == 0
	if reversed {
		slices.Reverse(b)
	}
	copy(w[:], b)
	v := binary.LittleEndian.Uint64(w[:]) + m.small()
	if m.rng.IntN(2) == 0 {
		v = interesting[m.rng.IntN(len(interesting))]
	}
	m.put(b, v)
	if reversed {
		slices.Reverse(b)
	}
}

// length changes one of the lengths and counts of b, or the bytes that it counts along with it.
func (m *mutator) length(b []byte) []byte {
	m.at = slices.DeleteFunc(m.fields(b, m.at[:0]), func(at int) bool { return at < 0 || at+2 > len(b) })
	if len(m.at) == 0 {
		return b
	}
	at := m.at[m.rng.IntN(len(m.at))]
	field := b[at : at+2]
	v := binary.LittleEndian.Uint16(field)
	switch m.rng.IntN(8) {
	case 0:
		v = uint16(len(b))
	case 1:
		v = uint16(len(b) - at)
	case 2:
		v = uint16(len(b)-at) + uint16(m.small())
	case 3:
		other := m.at[m.rng.IntN(len(m.at))]
		v = binary.LittleEndian.Uint16(b[other:])
	case 4:
		v = uint16(interesting[m.rng.IntN(len(interesting))])
	case 5: // longer, and the bytes too
		more := 1 + m.rng.IntN(80)
		binary.LittleEndian.PutUint16(field, v+uint16(more))
		m.spare = append(m.spare[:0], make([]byte, more)...)
		return m.insertAt(b, at+2+m.rng.IntN(len(b)-at-1), m.spare)
	case 6: // shorter, and the bytes too
		end := m.end(b, at+2)
		binary.LittleEndian.PutUint16(field, v-uint16(end-at-2))
		return slices.Delete(b, at+2, end)
	default:
		v += uint16(m.small())
	}
	binary.LittleEndian.PutUint16(field, v)
	return b
}

// put writes the low bytes of v over b.
func (m *mutator) put(b []byte, v uint64) {
	for i := range b {
		b[i] = byte(v)
		v >>= 8
	}
}

// small returns a number from -40 to 40, modulo 2^64.
func (m *mutator) small() uint64 { return uint64(m.rng.Int64N(81) - 40) }

// end returns the end of a piece of b that begins at a place: mostly a short one.
func (m *mutator) end(b []byte, at int) int {
	if at >= len(b) {
		return len(b)
	}
	n := 1 + m.rng.IntN(1<<(1+m.rng.IntN(11)))
	return min(at+n, len(b))
}

// insert puts a few bytes into b, of one value or of any.
func (m *mutator) insert(b []byte) []byte {
	m.spare = m.spare[:0]
	v, same := byte(m.rng.Uint32()), m.rng.IntN(2) == 0
	for range 1 + m.rng.IntN(1<<(1+m.rng.IntN(6))) {
		if !same {
			v = byte(m.rng.Uint32())
		}
		m.spare = append(m.spare, v)
	}
	return m.insertAt(b, m.rng.IntN(len(b)+1), m.spare)
}

// insertAt puts a piece into b, of which nothing is kept beyond the longest.
func (m *mutator) insertAt(b []byte, at int, piece []byte) []byte {
	b = slices.Insert(b, at, piece...)
	return b[:min(len(b), longest)]
}
