// Package bad draws from the process's random source.
package bad

import "math/rand/v2"

func draw() uint64 {
	return rand.Uint64()
}
