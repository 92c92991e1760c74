// Package bad draws from the system.
package bad

import "crypto/rand"

func draw(b []byte) {
	rand.Read(b)
}
