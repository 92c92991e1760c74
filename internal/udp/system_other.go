//go:build !windows

package udp

import "syscall"

const errnoInUse = syscall.EADDRINUSE

// exclusive: a plain bind is already exclusive here.
func exclusive(uintptr) error { return nil }

// deaf: here only connected sockets hear of ICMP messages.
func deaf(uintptr) {}

func heldBack(error) bool { return false }

func tooLong(error) bool { return false }
