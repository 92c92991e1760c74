//go:build !windows

package udp

import "syscall"

const errnoInUse = syscall.EADDRINUSE

// exclusive: a plain bind is already exclusive here.
func exclusive(uintptr) error { return nil }

func heldBack(error) bool { return false }

func tooLong(error) bool { return false }
