//go:build !linux

package main

// leastPriority does nothing here.
func leastPriority() {}

// mostPriority does nothing here.
func mostPriority() {}
