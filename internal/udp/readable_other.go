//go:build !unix && !windows

package udp

// readable cannot be told here.
func readable(uintptr) bool { return false }
