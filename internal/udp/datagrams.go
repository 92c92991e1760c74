package udp

import "iter"

// Datagrams returns what comes in on a socket, one datagram at a time, until the socket is closed.
// Of a datagram longer than size bytes the rest is cut off. Each is valid until the next is asked
// for. Errors that concern one call only ([Closed]) are passed over.
func Datagrams(c Conn, size int) iter.Seq[*Datagram] {
	return func(yield func(*Datagram) bool) {
		ds := []Datagram{{Buf: make([]byte, size)}}
		for {
			n, err := c.Read(ds)
			if Closed(err) {
				return
			}
			if n > 0 && !yield(&ds[0]) {
				return
			}
		}
	}
}
