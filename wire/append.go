package wire

import "encoding/binary"

// The parts of a PDU, each appended to b. Lengths are checked before the first is called.

func appendPDU(b []byte, typ uint16, size int, word uint32, first, second int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, typ)
	b = le.AppendUint16(b, uint16(size))
	b = le.AppendUint32(b, word)
	b = le.AppendUint16(b, uint16(first))
	return le.AppendUint16(b, uint16(second))
}

func appendGuard(b []byte, l Layout, g *Guard) []byte {
	le := binary.LittleEndian
	b = append(b, g.Tracker[:]...)
	b = le.AppendUint32(b, g.TTL)
	b = le.AppendUint32(b, g.MaxSamples)
	if l == Layout1 {
		b = le.AppendUint32(b, g.BufferSize)
	}
	b = le.AppendUint32(b, g.MinSamples)
	b = le.AppendUint32(b, g.Threshold)
	return le.AppendUint32(b, 0)
}

func appendResource(b []byte, r *Resource) []byte {
	le := binary.LittleEndian
	b = append(b, r.Bucket[:]...)
	b = le.AppendUint32(b, r.Window)
	b = le.AppendUint32(b, r.Rate)
	b = le.AppendUint16(b, r.Tokens)
	return le.AppendUint16(b, 0)
}

func appendObservation(b []byte, l Layout, o *Observation) []byte {
	le := binary.LittleEndian
	b = append(b, o.Tracker[:]...)
	b = le.AppendUint32(b, o.TTL)
	b = le.AppendUint32(b, o.MaxSamples)
	if l == Layout1 {
		b = le.AppendUint32(b, o.BufferSize)
	}
	b = le.AppendUint32(b, o.MinSamples)
	return le.AppendUint32(b, o.Latency)
}

func appendLabel(b []byte, label string) []byte {
	if label == "" {
		return b
	}
	size := labelSize(len(label))
	end := len(b) + size
	le := binary.LittleEndian
	b = le.AppendUint16(b, TypeLabel)
	b = le.AppendUint16(b, uint16(size))
	b = le.AppendUint16(b, uint16(len(label)))
	b = append(b, label...)
	for len(b) < end {
		b = append(b, 0)
	}
	return b
}
