package weir

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// milliseconds converts a duration that must be what the wire can hold, or says
// why it is not.
func milliseconds(d time.Duration) (ms uint32, why string) {
	switch {
	case d < 0:
		return 0, fmt.Sprintf("%v is negative", d)
	case d%time.Millisecond != 0:
		return 0, fmt.Sprintf("%v is not a whole number of milliseconds", d)
	case d.Milliseconds() > math.MaxUint32:
		return 0, fmt.Sprintf("%v is over the longest possible, %v", d, math.MaxUint32*time.Millisecond)
	}
	return uint32(d.Milliseconds()), ""
}

// count says why n is not from 0 to top, if it is not.
func count(n int, top uint32) (why string) {
	if n < 0 || uint64(n) > uint64(top) {
		return fmt.Sprintf("%d is not from 0 to %d", n, top)
	}
	return ""
}

// badBlock is the error about a field of an element of a request or report.
func badBlock(list string, i int, field, reason string) error {
	return &ConfigError{Field: list + "[" + strconv.Itoa(i) + "]." + field, Reason: reason}
}
