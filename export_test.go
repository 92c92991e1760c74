package weir

import (
	"crypto/rand"

	"github.com/weirhq/weir/internal/udp"
)

// NewOn is New on another network than the machine's.
func NewOn(s udp.Stack, cfg Config) (*Client, error) {
	return newClient(cfg, platform{stack: s, clock: systemClock(), entropy: rand.Reader})
}
