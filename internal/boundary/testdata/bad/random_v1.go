// Package bad draws from the process's random source.
package bad

import "math/rand"

func draw() int {
	return rand.Int()
}
