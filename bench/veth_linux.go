package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// vethVariable is set in the process that runs in a network namespace of its own.
const vethVariable = "WEIR_BENCH_VETH"

// insideCommand is the command of a child in a namespace of its own, which becomes a server there.
const insideCommand = "inside"

// vethPairs counts the pairs of this process.
var vethPairs atomic.Int32

// veth is a pair of virtual network devices between this process and the namespace of one server. What leaves
// is cut up into packets in software, as where a network card does not do that.
type veth struct {
	here, there     string // devices
	client, address netip.Addr
}

// enterNetwork has this process start again in a network namespace of its own, unless it is in one already. It
// needs the rights to make one, as root or by way of a user namespace.
func enterNetwork(ctx context.Context) error {
	if os.Getenv(vethVariable) != "" {
		return command(ctx, "ip", "link", "set", "lo", "up")
	}
	for _, tool := range []string{"unshare", "ip", "ethtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("--veth needs the command %s (packages util-linux, iproute2 and ethtool): %w", tool, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"unshare", "--net"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-root-user")
	}
	path, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	args = append(append(args, self), os.Args[1:]...)
	return syscall.Exec(path, args, append(os.Environ(), vethVariable+"=1"))
}

// newVeth names a pair.
func newVeth() veth {
	n := byte(vethPairs.Add(1))
	return veth{
		here: "bench" + strconv.Itoa(int(n)), there: "server" + strconv.Itoa(int(n)),
		client: netip.AddrFrom4([4]byte{10, 99, n, 1}), address: netip.AddrFrom4([4]byte{10, 99, n, 2}),
	}
}

// args are those of the program with which a server starts in a namespace of its own.
func (v *veth) args(self, program string, args ...string) (string, []string) {
	return "unshare", append([]string{"--net", "--", self, insideCommand, v.there, v.address.String(), program}, args...)
}

// connect makes the pair, when the process of the server is in its namespace.
func (v *veth) connect(ctx context.Context, pid int) error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	await := func() bool {
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		return err == nil && its != own
	}
	if err := patiently(ctx, await); err != nil {
		return fmt.Errorf("the server has no network namespace of its own: %w", err)
	}
	return errors.Join(
		command(ctx, "ip", "link", "add", v.here, "type", "veth", "peer", "name", v.there, "netns", strconv.Itoa(pid)),
		setUp(ctx, v.here, v.client),
	)
}

// setUp gives a device its address, and has the system cut up what leaves by it.
func setUp(ctx context.Context, device string, addr netip.Addr) error {
	return errors.Join(
		command(ctx, "ethtool", "-K", device, "tx-udp-segmentation", "off", "gro", "on"),
		command(ctx, "ip", "addr", "add", addr.String()+"/30", "dev", device),
		command(ctx, "ip", "link", "set", device, "up"),
	)
}

// inside is the child: a device, an address, and a program, which it becomes when the device is there.
func inside(ctx context.Context, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("%s needs a device, an address and a program", insideCommand)
	}
	addr, err := netip.ParseAddr(args[1])
	if err != nil {
		return err
	}
	await := func() bool { return command(ctx, "ip", "link", "show", args[0]) == nil }
	if err := patiently(ctx, await); err != nil {
		return fmt.Errorf("there is no device %s: %w", args[0], err)
	}
	if err := errors.Join(command(ctx, "ip", "link", "set", "lo", "up"), setUp(ctx, args[0], addr)); err != nil {
		return err
	}
	path, err := exec.LookPath(args[2])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args[2:], os.Environ())
}

// patiently waits until something is so, for some seconds at most.
func patiently(ctx context.Context, is func() bool) error {
	const patience, look = 10 * time.Second, 2 * time.Millisecond
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for !is() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look):
		}
	}
	return nil
}

// command runs a program.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, bytes.TrimSpace(out))
	}
	return nil
}
