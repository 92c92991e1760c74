// Package bad draws from the process's random source.
package bad

import "math/rand/v2"

func draw(n int64) int64 {
	return rand.N(n)
}
