package core

import "errors"

// Errors of [Core.Submit] and [Core.Report], for errors.Is.
var (
	// ErrNoServers says that no server with an address is known. A core with a
	// domain then looks again by itself, at most once a second.
	ErrNoServers = errors.New("core: no servers are known; wait for discovery, or check the domain and its SRV records")

	// ErrTooManyInFlight says that Config.MaxInFlight requests are undecided.
	ErrTooManyInFlight = errors.New("core: too many requests in flight; ask for fewer at a time, or raise MaxInFlight")

	// ErrFailFast says that nobody has answered for a while, and that nothing was
	// sent therefore: see [FailFastConfig]. [Core.FailFast] says more.
	ErrFailFast = errors.New("core: failing fast; no server has answered for a while")

	// ErrClosed says that the core was closed.
	ErrClosed = errors.New("core: closed")
)

// FieldError says which field of a configuration, request or report cannot be
// used, and why.
type FieldError struct {
	Field  string // for example "Resources[1].Window"
	Reason string // what is wrong and what would be right
}

// Error returns "core: <field>: <reason>".
func (e *FieldError) Error() string {
	return "core: " + e.Field + ": " + e.Reason
}
