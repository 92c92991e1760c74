// Package demo is what "weir demo" does: it starts a DNS server and two r-servers
// as real child processes, drives a client against them, kills the oldest of them
// under load, and checks that what was promised happened.
//
// [Run] does it and tells a [Narrator] what happened; [Text] is the narrator that
// prints. Everything is on loopback and in one temporary directory, and all of it
// is gone when Run returns.
package demo
