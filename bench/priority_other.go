//go:build !linux

package main

// leastPriority does nothing here.
func leastPriority() {}
