//go:build !unix

package udp

// ahead cannot read past who waits in Read here.
type ahead struct{}

func (*ahead) read(descriptor, []Datagram) int { return 0 }
