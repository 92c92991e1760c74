package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/children"
)

// start starts a peer with all that belongs to it, on loopback. What it is set to is for a load of one
// key of which all is granted; or, if keys is not 0, for as many keys, each with a limit of 10. What
// does not start is skipped, as a peer that is not there.
func (p *peers) start(ctx context.Context, name string, keys int) (*subject, error) {
	if err := p.buildLoad(ctx, name); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.dir, name)
	if err != nil {
		return nil, err
	}
	s := newServing(dir, name)
	switch name {
	case redisName:
		s.subject.addr, err = s.redis(ctx)
	case gubernatorName:
		if err = p.build(ctx, name, "tool"); err == nil {
			err = s.gubernator(ctx, filepath.Join(p.dir, "gubernator"), keys)
		}
	case envoyName:
		if err = p.build(ctx, name, "tool"); err == nil {
			err = s.envoy(ctx, filepath.Join(p.dir, "service_cmd"), keys)
		}
	default:
		err = fmt.Errorf("there is no peer %q", name)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s.subject, nil
}

// serving is a peer's side: its processes, and the directory where they leave things.
type serving struct {
	dir     string
	family  *children.Family
	subject *subject
}

func newServing(dir, name string) *serving {
	s := &serving{dir: dir, family: children.New("", func(error) {}), subject: &subject{name: name}}
	s.subject.end = s.end
	return s
}

// end has all processes of a peer end, and returns when none is left.
func (s *serving) end() {
	for _, pid := range s.subject.pids {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Signal(syscall.SIGTERM) // they do not end with their standard input
		}
	}
	s.family.End()
}

// serve starts a process with settings in its environment, and returns when somebody accepts connections
// at its address.
func (s *serving) serve(ctx context.Context, addr netip.AddrPort, settings []string, program string, args ...string) error {
	const grace, pause = 10 * time.Second, 5 * time.Millisecond
	log, err := os.CreateTemp(s.dir, "log")
	if err != nil {
		return err
	}
	defer log.Close()
	// env becomes the program: there is one process, with the settings.
	child, err := s.family.Talk(log, "env", append(append(settings, program), args...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", errSkipped, err)
	}
	s.subject.pids = append(s.subject.pids, child.PID())
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, child)
		close(ended)
	}()
	deadline := time.After(grace)
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr.String())
		if err == nil {
			_ = conn.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			return fmt.Errorf("%w: %s ended before it served: %s", errSkipped, filepath.Base(program), tailOf(log.Name()))
		case <-deadline:
			return fmt.Errorf("%w: %s does not serve: %w; %s", errSkipped, filepath.Base(program), err, tailOf(log.Name()))
		case <-time.After(pause):
		}
	}
}

// tailOf is the end of a log.
func tailOf(path string) string {
	const most = 300
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}

// free finds addresses on loopback that nobody listens at.
func free(n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	var held []net.Listener // until all are found, so that they differ
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		at, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		found = append(found, at)
	}
	return found, nil
}

// redis starts a Redis that keeps nothing on disk.
func (s *serving) redis(ctx context.Context) (netip.AddrPort, error) {
	var none netip.AddrPort
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return none, fmt.Errorf("%w: there is no redis-server on this machine", errSkipped)
	}
	at, err := free(1)
	if err != nil {
		return none, err
	}
	return at[0], s.serve(ctx, at[0], nil, program,
		"--bind", at[0].Addr().String(), "--port", fmt.Sprint(at[0].Port()), "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
}

// gubernator starts a cluster of one. It exports no traces, as nobody is there to take them.
func (s *serving) gubernator(ctx context.Context, program string, keys int) error {
	at, err := free(3)
	if err != nil {
		return err
	}
	calls, web, gossip := at[0], at[1].String(), at[2].String()
	settings := []string{
		"GUBER_GRPC_ADDRESS=" + calls.String(), "GUBER_ADVERTISE_ADDRESS=" + calls.String(), "GUBER_HTTP_ADDRESS=" + web,
		"GUBER_PEER_DISCOVERY_TYPE=member-list", "GUBER_MEMBERLIST_ADDRESS=" + gossip, "GUBER_MEMBERLIST_BIND_ADDRESS=" + gossip,
		"GUBER_MEMBERLIST_KNOWN_NODES=" + gossip, "GUBER_LOG_LEVEL=error", "OTEL_TRACES_EXPORTER=none",
	}
	if keys > 0 { // it forgets others beyond, and parts of its memory have some more than their share
		settings = append(settings, fmt.Sprint("GUBER_CACHE_SIZE=", 2*keys))
	}
	s.subject.addr = calls
	return s.serve(ctx, calls, settings, program)
}

// envoy starts envoyproxy/ratelimit, and the Redis that it keeps its counters in.
func (s *serving) envoy(ctx context.Context, program string, keys int) error {
	unit, limit := "second", peerLimit
	if keys > 0 {
		unit, limit = "hour", 10
	}
	const sub = "ratelimit"
	config := filepath.Join(s.dir, sub, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("domain: bench\ndescriptors:\n  - key: key\n    rate_limit: {unit: %s, requests_per_unit: %d}\n", unit, limit)
	if err := os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	redis, err := s.redis(ctx)
	if err != nil {
		return err
	}
	at, err := free(3)
	if err != nil {
		return err
	}
	settings := []string{"LOG_LEVEL=error", "USE_STATSD=false", "DISABLE_STATS=true"}
	for i, what := range []string{"GRPC_", "", "DEBUG_"} {
		settings = append(settings, fmt.Sprintf("%sHOST=%v", what, at[i].Addr()), fmt.Sprintf("%sPORT=%d", what, at[i].Port()))
	}
	settings = append(settings, "RUNTIME_ROOT="+s.dir, "RUNTIME_SUBDIRECTORY="+sub, "RUNTIME_WATCH_ROOT=false",
		"BACKEND_TYPE=redis", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.String())
	s.subject.addr = at[0]
	return s.serve(ctx, at[0], settings, program)
}
