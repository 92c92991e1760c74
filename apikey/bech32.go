package apikey

import "strings"

// Bech32 as in BIP-173, without its limit of 90 characters: a lower-case
// human-readable part, the separator "1", data of five bits a character, and a
// checksum of six characters.

const (
	bech32Charset  = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	bech32Checksum = 6
)

// bech32Digit maps a character to its five bits, or to 0xff.
var bech32Digit = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range len(bech32Charset) {
		t[bech32Charset[i]] = byte(i)
	}
	return t
}()

// bech32Encode returns the Bech32 string of payload under the lower-case
// human-readable part hrp.
func bech32Encode(hrp string, payload []byte) string {
	digits := toDigits(payload)
	check := bech32Poly(hrp, append(digits, make([]byte, bech32Checksum)...)) ^ 1

	var s strings.Builder
	s.Grow(len(hrp) + 1 + len(digits) + bech32Checksum)
	s.WriteString(hrp)
	s.WriteByte('1')
	for _, d := range digits {
		s.WriteByte(bech32Charset[d])
	}
	for i := range bech32Checksum {
		s.WriteByte(bech32Charset[check>>(5*(bech32Checksum-1-i))&31])
	}
	return s.String()
}

// bech32Split checks everything about a string but the padding of its payload.
// It returns the human-readable part in lower case and the digits without the
// checksum.
func bech32Split(s string) (hrp string, digits []byte, err error) {
	var lower, upper bool
	for i := range len(s) {
		c := s[i]
		if c < 33 || c > 126 {
			return "", nil, invalid("character %d is a blank, a control or a non-ASCII character", i+1)
		}
		lower = lower || 'a' <= c && c <= 'z'
		upper = upper || 'A' <= c && c <= 'Z'
	}
	if lower && upper {
		return "", nil, invalid("it mixes upper and lower case")
	}
	s = strings.ToLower(s)

	sep := strings.LastIndexByte(s, '1')
	if sep < 1 {
		return "", nil, invalid("there is no prefix with the separator 1 after it")
	}
	hrp, data := s[:sep], s[sep+1:]
	if len(data) < bech32Checksum {
		return "", nil, invalid("it is too short to hold a checksum")
	}
	digits = make([]byte, len(data))
	for i := range len(data) {
		d := bech32Digit[data[i]]
		if d == 0xff {
			return "", nil, invalid("character %d is not in the Bech32 set", sep+1+i+1)
		}
		digits[i] = d
	}
	if bech32Poly(hrp, digits) != 1 {
		return "", nil, invalid("the checksum is wrong: a character was changed, lost or added")
	}
	return hrp, digits[:len(digits)-bech32Checksum], nil
}

// toDigits regroups bytes into digits of five bits; the unused bits of the last
// digit are 0.
func toDigits(payload []byte) []byte {
	digits := make([]byte, 0, (len(payload)*8+4)/5+bech32Checksum)
	var acc uint32
	var held int
	for _, b := range payload {
		acc = acc<<8 | uint32(b)
		for held += 8; held >= 5; held -= 5 {
			digits = append(digits, byte(acc>>(held-5)&31))
		}
	}
	if held > 0 {
		digits = append(digits, byte(acc<<(5-held)&31))
	}
	return digits
}

// fromDigits regroups digits into bytes. A whole digit too many and unused bits
// that are not 0 are errors.
func fromDigits(digits []byte) ([]byte, error) {
	payload := make([]byte, 0, len(digits)*5/8)
	var acc uint32
	var held int
	for _, d := range digits {
		acc = acc<<5 | uint32(d)
		if held += 5; held >= 8 {
			held -= 8
			payload = append(payload, byte(acc>>held))
		}
	}
	if held >= 5 {
		return nil, invalid("the padding is wrong: there is a character too many")
	}
	if acc&(1<<held-1) != 0 {
		return nil, invalid("the padding is wrong: unused bits of the last character are not 0")
	}
	return payload, nil
}

// bech32Poly is the remainder of the BCH code over the expanded human-readable
// part and the digits; it is 1 for a valid string.
func bech32Poly(hrp string, digits []byte) uint32 {
	rem := uint32(1)
	for i := range len(hrp) {
		rem = bech32Step(rem, hrp[i]>>5)
	}
	rem = bech32Step(rem, 0)
	for i := range len(hrp) {
		rem = bech32Step(rem, hrp[i]&31)
	}
	for _, d := range digits {
		rem = bech32Step(rem, d)
	}
	return rem
}

func bech32Step(rem uint32, digit byte) uint32 {
	top := rem >> 25
	rem = rem&0x1ffffff<<5 ^ uint32(digit)
	for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
		if top>>i&1 == 1 {
			rem ^= g
		}
	}
	return rem
}
