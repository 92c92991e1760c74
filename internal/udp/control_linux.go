package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlSpace holds all the messages that [askControl] may have switched on: an
// IPV6_PKTINFO of 40 bytes, a timestamp of 32, a counter of 24 and a size of 24.
const controlSpace = 128

const (
	headerLen = int(unsafe.Sizeof(unix.Cmsghdr{}))
	wordLen   = int(unsafe.Sizeof(unix.Cmsghdr{}.Len)) // size_t
	infoLen4  = unix.SizeofInet4Pktinfo                // ifindex u32, local address [4], address in the header [4]
	infoLen6  = unix.SizeofInet6Pktinfo                // address [16], ifindex u32
)

// asked are the control messages that a socket's datagrams carry.
type asked struct {
	addr  bool // the local address
	stamp bool // when they were received
	drops bool // how many were lost before

	bursts   bool // they may come in bursts, and the size of each is told
	segments bool // they may leave in bursts, which is told by none
	buffers  int  // for bursts that come; 0 is as many as there can be
}

func (a asked) any() bool { return a.addr || a.stamp || a.drops || a.bursts }

// askControl switches on the control messages that the options ask for. What the
// system cannot tell remains unknown, except the address: an answer from another one
// than that asked is lost.
func askControl(fd uintptr, local netip.Addr, o Options) (a asked, err error) {
	s := int(fd)
	if o.AskedAddr && local.IsUnspecified() {
		if local.Is4() {
			err = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		} else {
			err = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
		if err != nil {
			return a, fmt.Errorf("ask for the local address of datagrams: %w", err)
		}
		a.addr = true
	}
	if o.Received {
		a.stamp = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) == nil
	}
	if o.CountDrops {
		a.drops = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) == nil
	}
	if o.Bursts {
		a.bursts = unix.SetsockoptInt(s, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		_, err := unix.GetsockoptInt(s, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		a.segments, a.buffers = err == nil, o.BurstBuffers
	}
	return a, nil
}

// control is what the kernel told beside a datagram.
type control struct {
	local    netip.Addr // always an address that an answer can leave from, or the zero Addr
	received int64      // Unix ns, 0 if it was not told
	drops    uint32     // datagrams that the socket has lost so far, modulo 2^32
	counted  bool       // drops was told; the kernel leaves it out while it is 0
	size     int        // of each datagram in a burst but the last, 0 if there is only one
}

// readControl reads the control messages b that the kernel gave. The standard parser
// allocates a slice for every datagram; this one does not.
func readControl(b []byte) (c control) {
	for len(b) >= headerLen {
		size, level, kind := messageHeader(b)
		if size < headerLen || size > len(b) {
			return c
		}
		info := b[headerLen:size]
		switch {
		case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(info) >= infoLen4:
			c.local = netip.AddrFrom4([4]byte(info[4:8]))
		case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(info) >= infoLen6:
			if a := netip.AddrFrom16([16]byte(info[:16])); !a.IsMulticast() {
				c.local = a
			}
		case level == unix.SOL_SOCKET && kind == unix.SCM_TIMESTAMPNS && len(info) >= 2*wordLen:
			c.received = int64(word(info))*1e9 + int64(word(info[wordLen:]))
		case level == unix.SOL_SOCKET && kind == unix.SO_RXQ_OVFL && len(info) >= 4:
			c.drops, c.counted = binary.NativeEndian.Uint32(info), true
		case level == unix.IPPROTO_UDP && kind == unix.UDP_GRO && len(info) >= 4:
			c.size = int(min(binary.NativeEndian.Uint32(info), 1<<16))
		}
		b = b[min(aligned(size), len(b)):]
	}
	return c
}

// appendSource appends to b the control message that makes a datagram leave
// from a. The interface stays the routing table's choice.
func appendSource(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		b = appendHeader(b, headerLen+infoLen4, unix.IPPROTO_IP, unix.IP_PKTINFO)
		ip := a.As4()
		b = append(b, 0, 0, 0, 0)
		b = append(b, ip[:]...)
		b = append(b, 0, 0, 0, 0)
		return b
	}
	b = appendHeader(b, headerLen+infoLen6, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO)
	ip := a.As16()
	b = append(b, ip[:]...)
	b = append(b, 0, 0, 0, 0)
	return append(b, make([]byte, aligned(infoLen6)-infoLen6)...)
}

// appendSegment appends to b the control message that cuts what is sent into datagrams of a size.
func appendSegment(b []byte, size int) []byte {
	const length = 2
	for len(b) != aligned(len(b)) {
		b = append(b, 0)
	}
	b = appendHeader(b, headerLen+length, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	return append(b, make([]byte, aligned(length)-length)...)
}

func messageHeader(b []byte) (size int, level, kind int32) {
	length := word(b)
	if length > uint64(len(b)) {
		return -1, 0, 0
	}
	return int(length), int32(binary.NativeEndian.Uint32(b[wordLen:])), int32(binary.NativeEndian.Uint32(b[wordLen+4:]))
}

// word reads a size_t, or a half of a timespec.
func word(b []byte) uint64 {
	if wordLen == 8 {
		return binary.NativeEndian.Uint64(b)
	}
	return uint64(binary.NativeEndian.Uint32(b))
}

func appendHeader(b []byte, size int, level, kind uint32) []byte {
	if wordLen == 8 {
		b = binary.NativeEndian.AppendUint64(b, uint64(size))
	} else {
		b = binary.NativeEndian.AppendUint32(b, uint32(size))
	}
	b = binary.NativeEndian.AppendUint32(b, level)
	return binary.NativeEndian.AppendUint32(b, kind)
}

// aligned rounds a message's size up to where the next one starts.
func aligned(n int) int { return (n + wordLen - 1) &^ (wordLen - 1) }
