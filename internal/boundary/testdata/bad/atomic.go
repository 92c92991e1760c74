// Package bad counts for several goroutines.
package bad

import "sync/atomic"

var n atomic.Int64
