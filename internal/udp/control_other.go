//go:build !linux

package udp

import "net/netip"

const (
	canAskAddr   = false
	controlSpace = 0
)

func askAddr(bool) func(uintptr) error { return func(uintptr) error { return nil } }

func askedAddr([]byte) netip.Addr { return netip.Addr{} }

func appendSource(b []byte, _ netip.Addr) []byte { return b }
