package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/children"
)

// tenant is one of a target's.
type tenant struct {
	name    string
	key     apikey.Key
	maxRate int // 0: any
}

// newTenant makes a tenant with a key of its own at default quotas.
func newTenant(name string, id uint64, maxRate int) (tenant, error) {
	key, err := apikey.New(apikey.AuthAES, id, apikey.DefaultQuotas(), rand.Reader)
	return tenant{name, key, maxRate}, err
}

// target is a server under test, built from the tree around this module and run as a process.
type target struct {
	family *children.Family
	addr   netip.AddrPort
	id     ident.ServerID
	admin  string
	pid    int
	lost   chan error
}

// buildWeir builds the command from the tree around this module.
func buildWeir(ctx context.Context, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "weir")
	build := goBuild(ctx, "..", binary, "./cmd/weir")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the server: %w\n%s", err, out)
	}
	return binary, nil
}

// goBuild is a build in a directory. The go command ends at once when it is interrupted, and then leaves temporary
// files behind that a linker still writes: so they are beside the output, and go with it.
func goBuild(ctx context.Context, dir, output string, args ...string) *exec.Cmd {
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-o", output}, args...)...)
	build.Dir = dir
	build.Env = append(os.Environ(), "GOTMPDIR="+filepath.Dir(output))
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = 5 * time.Second // then it is killed
	return build
}

// place is where a process runs: on some processors, or on any if none are named, and how nice it is to others
// there.
type place struct {
	processors []int
	nice       int
	veth       *veth // behind a pair of devices, in a namespace of its own; else on loopback
}

// addr is where a server listens there.
func (p *place) addr() netip.Addr {
	if p.veth != nil {
		return p.veth.address
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// command is what starts a program there.
func (p *place) command(program string, args ...string) (string, []string, error) {
	if len(p.processors) == 0 && p.veth == nil {
		return program, args, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	if len(p.processors) > 0 {
		program, args = self, onArgs(*p, program, args...)
	}
	if p.veth != nil {
		program, args = p.veth.args(self, program, args...)
	}
	return program, args, nil
}

// connect makes the way to a process that was started there.
func (p *place) connect(ctx context.Context, pid int) error {
	if p.veth == nil {
		return nil
	}
	return p.veth.connect(ctx, pid)
}

// startTarget starts a server with some tenants.
func startTarget(ctx context.Context, binary string, where place, tenants ...tenant) (*target, error) {
	var file strings.Builder
	fmt.Fprintln(&file, "tenants:")
	for _, t := range tenants {
		fmt.Fprintf(&file, "  - {name: %s, key: %s", t.name, t.key.Encode())
		if t.maxRate > 0 {
			fmt.Fprintf(&file, ", max_rate: %d", t.maxRate)
		}
		fmt.Fprintln(&file, "}")
	}
	path := filepath.Join(filepath.Dir(binary), "tenants.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		return nil, err
	}
	t := &target{lost: make(chan error, 1)}
	anyPort := netip.AddrPortFrom(where.addr(), 0).String()
	binary, args, err := where.command(binary, "serve", "--tenants", path, "--listen", anyPort, "--admin", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t.family = children.New(binary, func(err error) { t.lost <- err })
	child, err := t.family.Start("server", args...)
	if err == nil {
		err = where.connect(ctx, child.PID())
	}
	if err == nil {
		err = t.await(ctx, child)
	}
	if err != nil {
		t.family.End()
		return nil, err
	}
	return t, nil
}

func (t *target) await(ctx context.Context, child *children.Child) error {
	attributes, err := child.Serving(ctx)
	if err != nil {
		return err
	}
	t.admin, t.pid = attributes["admin"], child.PID()
	if t.id, err = ident.ParseServerID(attributes["server_id"]); err != nil {
		return err
	}
	t.addr, err = netip.ParseAddrPort(strings.Trim(attributes["listen"], "[]"))
	return err
}

func (t *target) end() { t.family.End() }

// figures are what a target has counted since it started.
type figures struct {
	datagrams float64 // read
	lost      float64 // that the kernel dropped
	cpu       float64 // seconds
}

func (f figures) since(before figures) figures {
	return figures{f.datagrams - before.datagrams, f.lost - before.lost, f.cpu - before.cpu}
}

// figures asks the target for what it has counted.
func (t *target) figures(ctx context.Context) (f figures, err error) {
	series, err := t.metrics(ctx)
	if err != nil {
		return f, err
	}
	return figures{
		datagrams: sumOf(series, "weir_worker_datagrams_total"), lost: sumOf(series, "weir_kernel_drops_total"),
		cpu: sumOf(series, "process_cpu_seconds_total"),
	}, nil
}

// metrics asks the target for its metrics: values by name and labels, as they are written.
func (t *target) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.admin+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the server for its metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return parseMetrics(response.Body)
}

// parseMetrics reads values by name and labels.
func parseMetrics(from io.Reader) (map[string]float64, error) {
	series := make(map[string]float64)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("the metric %q has no value: %w", line, err)
		}
		series[line[:at]] = v
	}
	return series, lines.Err()
}

// sumOf adds up the values of one name, whatever the labels.
func sumOf(series map[string]float64, name string) (sum float64) {
	for s, v := range series {
		if base, _, _ := strings.Cut(s, "{"); base == name {
			sum += v
		}
	}
	return sum
}
