//go:build !linux

package udp

import "net/netip"

const controlSpace = 0

type asked struct{ addr, segments bool }

func (a asked) any() bool { return false }

func askControl(uintptr, netip.Addr, Options) (asked, error) { return asked{}, nil }

type control struct {
	local    netip.Addr
	received int64
	drops    uint32
	counted  bool
}

func readControl([]byte) control { return control{} }

func appendSource(b []byte, _ netip.Addr) []byte { return b }
