//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowWidth returns how many characters a line of a terminal has, 0 if w is none.
func windowWidth(w any) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
