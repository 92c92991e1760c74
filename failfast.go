package weir

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/core"
)

// FailFastError is the error of a request that was not sent, because none has
// been answered for a while: see Config.FailFast. No token was consumed. It
// matches [ErrFailFast], and [ErrTimeout] too, since that is what it stands for.
type FailFastError struct {
	Since    time.Time     // when the client began to fail fast, by the wall clock of now
	Timeouts int           // requests that timed out in a row before that and since
	Last     *TimeoutError // of the last request or probe that timed out
}

// Error says since when nobody answers, and what the last request saw.
func (e *FailFastError) Error() string {
	return fmt.Sprintf("%v since %s, after %s in a row: nothing was sent; the client goes on probing; the last: %v",
		ErrFailFast, e.Since.UTC().Format(time.RFC3339), number(e.Timeouts, "timeout"), e.Last)
}

// Is reports whether target is [ErrFailFast].
func (e *FailFastError) Is(target error) bool { return target == ErrFailFast }

// Unwrap returns e.Last.
func (e *FailFastError) Unwrap() error { return e.Last }

// Timeout returns true. It is the method by which net.Error and others tell.
func (e *FailFastError) Timeout() bool { return true }

// failedFast is the error of a request that the core refuses with
// core.ErrFailFast. It is called with the lock held.
func (c *Client) failedFast(now core.Time) error {
	s, _ := c.core.FailFast()
	return &FailFastError{
		Since:    time.UnixMilli(now.Wall).Add(s.Since - now.Mono),
		Timeouts: s.Timeouts,
		Last:     &TimeoutError{Elapsed: s.Elapsed, Seen: s.Seen},
	}
}
