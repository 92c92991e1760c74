// Package copied copies a sealer, which `go vet` must report: a test of wire runs it.
package copied

import "github.com/weirhq/weir/wire"

// Copy repeats every nonce of s.
func Copy(s *wire.Sealer) wire.Sealer {
	c := *s
	return c
}
