//go:build !linux

package main

import (
	"context"
	"errors"
)

// floor is Linux's: elsewhere Go moves no batches.
func floor(context.Context, []string) error {
	return errors.New("the floor needs Linux")
}
