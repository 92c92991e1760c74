package main

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
)

// A round trip without an answer in time now and then does not end a measurement; many do, and so does another error.
func TestTimeTrips(t *testing.T) {
	timeout := fmt.Errorf("gone: %w", weir.ErrTimeout)
	other := errors.New("broken")
	for _, c := range []struct {
		name string
		err  func(n int) error
		want error
	}{
		{"all answered", func(int) error { return nil }, nil},
		{"one was lost", func(n int) error { return map[bool]error{true: timeout}[n == 3] }, nil},
		{"two of few were lost", func(n int) error { return map[bool]error{true: timeout}[n == 3 || n == 5] }, timeout},
		{"another error", func(n int) error { return map[bool]error{true: other}[n == 3] }, other},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			_, err := timeTrips(t.Context(), func() error {
				time.Sleep(time.Millisecond)
				n++
				return c.err(n)
			}, 10*time.Millisecond)
			if !errors.Is(err, c.want) || err == nil && n != 10 {
				t.Errorf("%s: %v after %d, want %v", c.name, err, n, c.want)
			}
		})
	}
}
