package dnszone

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

const headerSize = 12

// Flags in the third byte of a message.
const (
	flagQR     = 0x80
	flagTC     = 0x02
	flagRD     = 0x01
	opcodeMask = 0x78
)

// respond answers one raw message, nil for none. It looks at the counts before
// it unpacks anything: what no question has is not worth the memory.
func (z *Zone) respond(b []byte, udp bool) []byte {
	if len(b) < headerSize || b[2]&flagQR != 0 {
		return nil
	}
	if b[2]&opcodeMask != 0 {
		return bare(b, dns.RcodeNotImplemented)
	}
	questions, answers := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
	authority, additional := binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])
	if questions != 1 || answers > 0 || authority > 1 || additional > 2 { // IXFR has one authority record
		return bare(b, dns.RcodeFormatError)
	}
	q := new(dns.Msg)
	if q.Unpack(b) != nil {
		return bare(b, dns.RcodeFormatError)
	}
	m := z.Handle(q, udp)
	if m == nil {
		return nil
	}
	out, err := m.Pack()
	if err != nil {
		return bare(b, dns.RcodeServerFailure)
	}
	return out
}

// bare is a header without a question, for what could not be read.
func bare(b []byte, rcode byte) []byte {
	out := make([]byte, headerSize)
	copy(out, b[:2])
	out[2] = flagQR | b[2]&(opcodeMask|flagRD)
	out[3] = rcode
	return out
}

// slip answers a question with nothing but "ask over TCP", or nil when b is not
// a question. Who forged the sender's address gains nothing by it; a real client
// comes back over TCP, where addresses are true.
func slip(b []byte) []byte {
	if len(b) < headerSize || b[2]&(flagQR|opcodeMask) != 0 || binary.BigEndian.Uint16(b[4:]) != 1 {
		return nil
	}
	q := new(dns.Msg)
	// The question alone: what follows it does not matter here.
	head := append([]byte(nil), b...)
	clear(head[6:headerSize])
	if q.Unpack(head) != nil {
		return nil
	}
	m := new(dns.Msg)
	m.Id, m.Response, m.RecursionDesired, m.Truncated = q.Id, true, q.RecursionDesired, true
	m.Question = q.Question
	out, err := m.Pack()
	// It is longer than the question only if the name there was compressed, by pointers to what
	// follows or into itself. Nobody has a reason to ask so but to have much sent to somebody.
	if err != nil || len(out) > len(b) {
		return nil
	}
	return out
}
