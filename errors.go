package weir

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/policy"
)

// Errors of the client, for errors.Is. After any of them there is no decision:
// whether to let the work through or not is the caller's choice. An error of
// [Client.Acquire] may have consumed tokens.
var (
	// ErrNoServers says that no server is known. What discovery failed with is
	// part of the error, for errors.Is and errors.As.
	ErrNoServers = errors.New("weir: no servers are known")

	// ErrTimeout says that no server's answer counted within the policy's horizon.
	// The error is a [*TimeoutError].
	ErrTimeout = errors.New("weir: no decision in time")

	// ErrFailFast says that the request was not sent, because none has been
	// answered for a while: see Config.FailFast. The error is a [*FailFastError],
	// which matches ErrTimeout too.
	ErrFailFast = errors.New("weir: no server answers")

	// ErrIO says that nothing could be sent. The last cause is part of the error.
	ErrIO = errors.New("weir: no datagram could be sent")

	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("weir: the client is closed")

	// ErrTooManyInFlight says that Config.MaxInFlight requests are undecided.
	ErrTooManyInFlight = errors.New("weir: too many requests are in flight; ask for fewer at a time, or raise Config.MaxInFlight")

	// ErrRejected says that [Client.Do] did not run the work because the request
	// was rejected. The error is a [*RejectedError].
	ErrRejected = errors.New("weir: rejected")
)

// ConfigError says which field of a configuration, request or report cannot be
// used, and why. Match it with errors.As.
type ConfigError struct {
	Field  string // for example "Zone" or "Resources[1].Bucket.Window"
	Reason string // what is wrong, and what would be right
}

// Error returns "weir: <field>: <reason>".
func (e *ConfigError) Error() string { return "weir: " + e.Field + ": " + e.Reason }

// translate turns an error of the core into one of this package.
func translate(err error) error {
	var failing *FailFastError
	var field *core.FieldError
	var number *policy.FieldError
	switch {
	case errors.Is(err, core.ErrClosed):
		return ErrClosed
	case errors.Is(err, core.ErrTooManyInFlight):
		return ErrTooManyInFlight
	case errors.Is(err, core.ErrNoServers):
		return ErrNoServers
	case errors.As(err, &failing):
		return failing
	case errors.Is(err, core.ErrFailFast):
		return ErrFailFast
	case errors.As(err, &field):
		return &ConfigError{Field: field.Field, Reason: field.Reason}
	case errors.As(err, &number):
		return &ConfigError{Field: "Policy." + number.Field, Reason: number.Problem}
	}
	return fmt.Errorf("weir: %w", err)
}
