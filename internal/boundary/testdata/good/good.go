// Package good comes close to every rule and breaks none.
package good

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// The group's comment covers its constants.
const (
	One = 1
	Two = 2
)

// T is exported.
type T struct {
	At   time.Time // a time that was handed in
	Addr netip.Addr

	rng *rand.Rand
	set map[string]int
}

// Clock has methods of the names that the package time has.
type Clock interface {
	Now() time.Time // not time.Now
	// Since is not time.Since.
	Since(time.Time) time.Duration
}

// New seeds what it draws from.
func New(seed1, seed2 uint64) *T {
	return &T{rng: rand.New(rand.NewPCG(seed1, seed2))}
}

// Draw draws from a source that was handed in.
func (t *T) Draw() int { return t.rng.IntN(int(time.Second)) }

// Age asks a clock that was handed in.
func (t *T) Age(c Clock) time.Duration { return c.Since(t.At) + c.Now().Sub(t.At) }

// Names returns the names in order.
func (t *T) Names() []string {
	return slices.Sorted(maps.Keys(t.set)) //boundary:unordered sorted here
}

// Total adds up.
func (t *T) Total() (n int) {
	//boundary:unordered a sum does not depend on the order
	for _, v := range t.set {
		n += v
	}
	for i := range 3 {
		n += i
	}
	for range slices.Values(t.Names()) {
		n++
	}
	return n
}

// String formats without printing.
func (t *T) String() string { return fmt.Sprint(t.Total()) }

type hidden struct{ Field int }

func (hidden) Method() {}
