//go:build !linux

package main

import (
	"context"
	"errors"
)

var errProcessors = errors.New("processes cannot be kept to processors on this system")

// processors returns none: nothing can be kept apart here.
func processors() []int { return nil }

func stayOn([]int) error { return errProcessors }

func onArgs(_ place, program string, args ...string) []string {
	return append([]string{program}, args...)
}

func on(context.Context, []string) error { return errProcessors }
