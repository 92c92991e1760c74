package wire

import "encoding/binary"

// NextTLV splits the first TLV off b: its type, its body, and what follows it. ok is false when b
// does not begin with a well-formed TLV: type and size as u16, the size counting itself and the
// type, at least 4 and within b. It is how the rest of a request or response is walked, see
// [RequestView.Rest].
func NextTLV(b []byte) (typ uint16, body, rest []byte, ok bool) {
	if len(b) < tlvSize {
		return 0, nil, nil, false
	}
	size := int(binary.LittleEndian.Uint16(b[2:]))
	if size < tlvSize || size > len(b) {
		return 0, nil, nil, false
	}
	return binary.LittleEndian.Uint16(b), b[tlvSize:size:size], b[size:], true
}

// filled reports whether b is empty or a run of well-formed TLVs that fills it.
func filled(b []byte) bool {
	for len(b) > 0 {
		_, _, rest, ok := NextTLV(b)
		if !ok {
			return false
		}
		b = rest
	}
	return true
}

// findLabel returns the first non-empty metrics label in a rest that is filled, nil if there is
// none, or an error when a label, the first or another, does not fit its TLV.
func findLabel(rest []byte) ([]byte, error) {
	var label []byte
	for len(rest) > 0 {
		typ, body, next, _ := NextTLV(rest)
		rest = next
		if typ != TypeLabel {
			continue
		}
		if len(body) < labelPrefix-tlvSize || len(body)%4 != 0 {
			return nil, errLabel
		}
		n := int(binary.LittleEndian.Uint16(body))
		if n > len(body)-(labelPrefix-tlvSize) {
			return nil, errLabel
		}
		if label == nil && n > 0 {
			label = body[2 : 2+n : 2+n]
		}
	}
	return label, nil
}

// labelSize returns the length of the TLV that holds a label of n bytes; none for an empty one.
func labelSize(n int) int {
	if n == 0 {
		return 0
	}
	return (labelPrefix + n + 3) &^ 3
}
