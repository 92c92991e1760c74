//go:build unix

package filewatch

import "syscall"

// openAtOnce is the flag by which opening a pipe waits for no writer.
const openAtOnce = syscall.O_NONBLOCK
