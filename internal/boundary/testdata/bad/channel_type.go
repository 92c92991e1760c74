// Package bad has a channel.
package bad

var ready chan int
