//go:build !linux

package udp

import "syscall"

func canBatch(syscall.RawConn) bool { return false }

func newBatches(s *socket, _ syscall.RawConn, alone *writer, told asked) (source, sink) {
	return s.in, alone
}
