package udp

// ReadBufferFor returns the [Options.ReadBuffer] of a socket that can hold so many
// datagrams, of any size that Weir has, until they are read.
func ReadBufferFor(datagrams int) int { return datagrams * readBufferEach }

// HeldBy returns how many datagrams a socket's [Conn.ReadBuffer] holds.
func HeldBy(readBuffer int) int { return readBuffer / readBufferEach }
