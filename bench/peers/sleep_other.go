//go:build !linux

package main

import "time"

// sleepUntil returns at t, or some time after it.
func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
