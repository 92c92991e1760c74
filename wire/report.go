package wire

import (
	"encoding/binary"

	"github.com/weirhq/weir/ident"
)

// ReportView is a latency report as it was received: a view into the bytes that were given to
// [ParseReport], valid as long as they are.
type ReportView struct {
	frame

	// Layout is the layout that the lengths tell; [Layout2] when the report is empty.
	Layout Layout

	items []byte
}

// ParseReport reads a report's PDU into v (docs/protocol.md, "PDU", "Layouts"). Its layout is the
// one whose blocks fill the PDU exactly. Bytes behind the PDU, the word and the reserved 16 bits
// beside the count are ignored. An error is of class [ErrMalformed], and v is then zero. It does
// not allocate.
func ParseReport(pdu []byte, v *ReportView) error {
	*v = ReportView{}
	f, err := parseFrame(pdu, KindReport)
	if err != nil {
		return err
	}
	body := f.body()
	n := int(binary.LittleEndian.Uint16(body))
	body = body[countsSize:]
	var l Layout
	switch len(body) {
	case n * observationSize2:
		l = Layout2
	case n * observationSize1:
		l = Layout1
	default:
		return errReportBody
	}
	v.frame, v.items, v.Layout = f, body, l
	return nil
}

// Len returns how many observations there are.
func (v *ReportView) Len() int { return len(v.items) / v.Layout.observationSize() }

// At returns observation i, counted from 0. Like a slice it panics when i is out of range.
func (v *ReportView) At(i int) Observation {
	size := v.Layout.observationSize()
	p := v.items[i*size : (i+1)*size]
	o := Observation{
		Tracker:    ident.ID(p[:idSize]),
		TTL:        binary.LittleEndian.Uint32(p[ttlAt:]),
		MaxSamples: binary.LittleEndian.Uint32(p[maxSamplesAt:]),
		MinSamples: binary.LittleEndian.Uint32(p[size-reportMinEnd:]),
		Latency:    binary.LittleEndian.Uint32(p[size-latencyEnd:]),
	}
	if v.Layout == Layout1 {
		o.BufferSize = binary.LittleEndian.Uint32(p[bufferSizeAt:])
	}
	return o
}
