package udp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canAskAddr says whether the system tells which local address a datagram was
// sent to, and lets one be chosen for a datagram sent.
const canAskAddr = true

// controlSpace holds one IP_PKTINFO or IPV6_PKTINFO message with room to spare.
const controlSpace = 64

const (
	headerLen = int(unsafe.Sizeof(unix.Cmsghdr{}))
	wordLen   = int(unsafe.Sizeof(unix.Cmsghdr{}.Len)) // size_t
	infoLen4  = unix.SizeofInet4Pktinfo                // ifindex u32, local address [4], address in the header [4]
	infoLen6  = unix.SizeofInet6Pktinfo                // address [16], ifindex u32
)

// askAddr switches the control message on.
func askAddr(v4 bool) func(fd uintptr) error {
	return func(fd uintptr) error {
		if v4 {
			return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
}

// askedAddr finds the address asked in the control messages b that the kernel
// gave, or returns the zero Addr: always an address that an answer can leave
// from. The standard parser allocates a slice for every datagram; this one does
// not.
func askedAddr(b []byte) netip.Addr {
	for len(b) >= headerLen {
		size, level, kind := messageHeader(b)
		if size < headerLen || size > len(b) {
			return netip.Addr{}
		}
		info := b[headerLen:size]
		switch {
		case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(info) >= infoLen4:
			return netip.AddrFrom4([4]byte(info[4:8]))
		case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(info) >= infoLen6:
			if a := netip.AddrFrom16([16]byte(info[:16])); !a.IsMulticast() {
				return a
			}
		}
		b = b[min(aligned(size), len(b)):]
	}
	return netip.Addr{}
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

func messageHeader(b []byte) (size int, level, kind int32) {
	var length uint64
	if wordLen == 8 {
		length = binary.NativeEndian.Uint64(b)
	} else {
		length = uint64(binary.NativeEndian.Uint32(b))
	}
	if length > uint64(len(b)) {
		return -1, 0, 0
	}
	return int(length), int32(binary.NativeEndian.Uint32(b[wordLen:])), int32(binary.NativeEndian.Uint32(b[wordLen+4:]))
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
