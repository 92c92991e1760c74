// Package bad takes a timer, as a value.
package bad

import "time"

var after = time.AfterFunc
