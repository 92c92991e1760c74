// Package bad has a lock.
package bad

import "sync"

var mu sync.Mutex
