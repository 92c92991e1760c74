package udp

import "time"

func (s *socket) Pending() bool {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	there := false
	err = raw.Control(func(fd uintptr) { there = readable(fd) })
	return err == nil && there
}

func (s *socket) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }
