package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/children"
)

// subject is a server that is measured: a process of its own, and where to ask it.
type subject struct {
	name string
	addr netip.AddrPort
	id   ident.ServerID // of an r-server
	pids []int          // of all that is on the server's side
	end  func()

	target *target          // an r-server
	family *children.Family // what is started for it ends with it
}

// ticks is in how many parts the system divides a second of processor time.
const ticks = 100

// cpu is the processor time that the server's side has used so far.
func (s *subject) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range s.pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("how much %s has used: %w", s.name, err)
		}
		const userField, systemField = 11, 12 // behind the name, which may hold anything
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		for _, i := range []int{userField, systemField} {
			n, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("how much %s has used: %w", s.name, err)
			}
			sum += time.Duration(n) * time.Second / ticks
		}
	}
	return sum, nil
}

// floorJob is what the floor is to serve, on its standard input.
type floorJob struct {
	Key               string
	Guards, Resources int // of every request
	Workers           int
}

// startFloor starts the least that a server can be, for requests of one shape.
func startFloor(t tenant, guards, resources int) (*subject, error) {
	return startFloorOn(place{}, t, guards, resources)
}

// startFloorOn starts it in a place.
func startFloorOn(where place, t tenant, guards, resources int) (*subject, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	family := children.New(self, func(error) {})
	args, workers := []string{floorCommand}, runtime.NumCPU()
	if n := len(where.processors); n > 0 {
		args, workers = onArgs(where, self, args...), n
	}
	child, err := family.Talk(os.Stderr, self, args...)
	if err != nil {
		family.End()
		return nil, err
	}
	text, err := json.Marshal(floorJob{Key: t.key.Encode(), Guards: guards, Resources: resources, Workers: workers})
	if err == nil {
		_, err = fmt.Fprintf(child, "%s\n", text)
	}
	line := ""
	if err == nil {
		line, err = bufio.NewReader(child).ReadString('\n')
	}
	var addr netip.AddrPort
	if err == nil {
		addr, err = netip.ParseAddrPort(strings.TrimSpace(line))
	}
	if err != nil {
		family.End()
		return nil, fmt.Errorf("starting the floor: %w", err)
	}
	return &subject{name: "floor", addr: addr, pids: []int{child.PID()}, family: family, end: family.End}, nil
}

// startWeir starts the server with one tenant.
func startWeir(ctx context.Context, binary string, t tenant) (*subject, error) {
	return startWeirOn(ctx, place{}, binary, t)
}

// startWeirOn starts it in a place.
func startWeirOn(ctx context.Context, where place, binary string, t tenant) (*subject, error) {
	target, err := startTarget(ctx, binary, where, t)
	if err != nil {
		return nil, err
	}
	return &subject{name: "r-server", addr: target.addr, id: target.id, target: target, family: target.family, pids: []int{target.pid}, end: target.end}, nil
}
