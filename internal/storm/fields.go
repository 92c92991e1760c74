package storm

import "encoding/binary"

// Fields appends to at where the 16-bit little-endian lengths, counts and types of b are, as far as
// they are within b and can be told. What it gives wrong is mutated all the same.
type Fields func(b []byte, at []int) []int

// Datagram finds the fields of a datagram as docs/protocol.md describes it: those of both TLVs, and
// of a PDU that is in clear. Of one that is encrypted it finds none that means anything.
func Datagram(b []byte, at []int) []int {
	header := u16(b, 2)
	at = append(at, 0, 2, header, header+2)
	const cookie, aes = 0x4143, 0x4541
	pdu := header + 4
	switch u16(b, header) {
	case cookie:
		pdu = header + 36
	case aes:
		pdu = header + 32
	}
	return pduFields(b, pdu, at)
}

// PDU finds the fields of a PDU: its type and size, the two counts, and in both layouts the type,
// size and length of the label behind the blocks, the last guard's latency and the last resource's
// padding.
func PDU(b []byte, at []int) []int { return pduFields(b, 0, at) }

func pduFields(b []byte, pdu int, at []int) []int {
	at = append(at, pdu, pdu+2, pdu+4, pdu+8, pdu+10)
	guards, resources := u16(b, pdu+8), u16(b, pdu+10)
	for _, size := range [...]int{36, 40} {
		blocks := pdu + 12 + guards*size
		rest := blocks + resources*28
		at = append(at, blocks-4, rest-2, rest, rest+2, rest+4)
	}
	return at
}

// u16 returns the field at a place, or 0 if there is none.
func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b[at:]))
}
