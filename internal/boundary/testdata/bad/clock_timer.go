// Package bad arms a timer through a dot import.
package bad

import . "time"

func arm() *Timer {
	return NewTimer(Second)
}
