//go:build !linux

package main

import (
	"context"
	"errors"
	"net/netip"
)

const insideCommand = "inside"

var errVeth = errors.New("--veth needs Linux")

// veth is not to be had here.
type veth struct{ address netip.Addr }

func enterNetwork(context.Context) error { return errVeth }

func newVeth() veth { return veth{} }

func (v *veth) args(_, program string, args ...string) (string, []string) { return program, args }

func (v *veth) connect(context.Context, int) error { return errVeth }

func inside(context.Context, []string) error { return errVeth }
