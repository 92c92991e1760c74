package wire

import "encoding/binary"

// PDUKind tells what kind of PDU an opened datagram holds, from its type alone (docs/protocol.md,
// "PDU"). An unknown type, or fewer bytes than a PDU's header, is an error of class [ErrMalformed].
func PDUKind(pdu []byte) (Kind, error) {
	if len(pdu) < pduSize {
		return 0, errPDUCut
	}
	switch binary.LittleEndian.Uint16(pdu) {
	case typeRequest:
		return KindRequest, nil
	case typeResponse:
		return KindResponse, nil
	case typeReport:
		return KindReport, nil
	}
	return 0, errPDUUnknown
}

// frame is a PDU whose kind and size are checked, with what trails it.
type frame struct {
	all  []byte
	size int
}

// PDU returns the PDU, exactly as many bytes as its size says. It is a view.
func (f *frame) PDU() []byte { return f.all[:f.size:f.size] }

// Trailing returns the bytes behind the PDU, which mean nothing and are ignored. It is a view.
func (f *frame) Trailing() []byte { return f.all[f.size:] }

// Word returns the 32 bits that follow the PDU's size: a request's dedup TTL, else written 0 and
// ignored.
func (f *frame) Word() uint32 {
	if f.size == 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(f.all[4:])
}

// body returns what follows the PDU's header; the two counts are there in every kind.
func (f *frame) body() []byte { return f.all[pduSize:f.size:f.size] }

// parseFrame checks the header of a PDU of the kind that is wanted, and that its two counts are
// there.
func parseFrame(pdu []byte, want Kind) (frame, error) {
	kind, err := PDUKind(pdu)
	if err != nil {
		return frame{}, err
	}
	if kind != want {
		return frame{}, errPDUKind
	}
	size := int(binary.LittleEndian.Uint16(pdu[2:]))
	if size < pduSize+countsSize {
		return frame{}, errBody
	}
	if size > len(pdu) {
		return frame{}, errPDUSize
	}
	return frame{all: pdu, size: size}, nil
}
