//go:build !linux

package main

// realTime is not known here.
func realTime() bool { return false }
