package main

import (
	"fmt"
	"os"
	"syscall"
)

// The exit statuses, as the top-level help documents them.
const (
	exitOK      = 0
	exitFailure = 1
	// exitNoDecision is that of a question which got no answer.
	exitNoDecision = 2
	// exitUsage is that of a wrong flag, key or setting: nothing was done.
	exitUsage = 64
)

// statusError ends the command with a status of its own. Without an err there is
// nothing more to print.
type statusError struct {
	code int
	err  error
}

func (e statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e statusError) Unwrap() error { return e.err }

// usage marks an error as one of usage.
func usage(err error) error {
	return statusError{code: exitUsage, err: err}
}

// signalStatus is the exit status of a program that a signal ended at once, as
// shells count it. The first signal asks for a clean end, the second is this one.
func signalStatus(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}
