package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// errSkipped says that something cannot be measured here, or was not to be, which is no failure.
var errSkipped = errors.New("skipped")

// The names of the peers, under which their generator knows them too.
const (
	redisName      = "redis"
	gubernatorName = "gubernator"
	envoyName      = "envoy"
)

// peerNames are those of all peers.
var peerNames = []string{redisName, gubernatorName, envoyName}

// crowd is how many requests are in flight when the server is held against its peers: of as many clients, each
// with a socket or a connection of its own, or of few that share four.
const crowd = 64

// peerComparisons hold the server against limiters that others wrote: each as good as it gets, when few clients
// have many requests in flight; and, without a bar, when each request is a client's own. Then nearly all is what the
// system takes for a datagram, or for a read and a write of a connection, and how these compare is the machine's.
var peerComparisons = []comparison{
	{[]bar{
		{"cpu_redis", "processor time a decision, by that of Redis with a GCRA script", cpu, 0.5, 0.33, true},
	}, withPeer(redisName, few)},
	{[]bar{
		{"cpu_gubernator", "processor time a decision, by gubernator's", cpu, 1.0 / 15, 1.0 / 30, true},
	}, withPeer(gubernatorName, few)},
	{[]bar{
		{"cpu_envoy", "processor time a decision, by that of envoyproxy/ratelimit with its Redis", cpu, 1.0 / 15, 1.0 / 30, true},
	}, withPeer(envoyName, few)},
	{[]bar{{"cpu_redis_lone", "the same, with a socket for each request", cpu, 0, 0, true}}, withPeer(redisName, crowd)},
	{[]bar{{"cpu_gubernator_lone", "the same, with a socket for each request", cpu, 0, 0, true}}, withPeer(gubernatorName, crowd)},
	{[]bar{{"cpu_envoy_lone", "the same, with a socket for each request", cpu, 0, 0, true}}, withPeer(envoyName, crowd)},
	{[]bar{
		{"tail", "p99 in an open loop at half of what the best peer can, by that peer's", p99, 0.7, 0.3, true},
	}, compareTail},
}

// peers are the limiters that others wrote, and the generator that asks them. They are built when they are
// needed first.
type peers struct {
	plan  comparePlan
	dir   string           // of what is built, and what they write
	built map[string]error // by module and arguments
}

// peerSlice is the length of a measurement of a peer: there are many, and their ratios are far from one.
func (p *comparePlan) peerSlice() time.Duration {
	return p.Slice / 5
}

// longSlice is the length of one whose latencies are looked at: a hundredth of it must be many.
func (p *comparePlan) longSlice() time.Duration { return p.Slice * 3 / 10 }

// tailSlice is the length of one whose p99 is compared: what holds the machine up for some milliseconds
// must be less than a hundredth of it.
func (p *comparePlan) tailSlice() time.Duration { return p.Slice / 2 }

// check says why the peers are not to be measured.
func (p *peers) check(name string) error {
	if p.plan.Quick && !slices.Contains(p.plan.Only, name) {
		return fmt.Errorf("%w: the peers are not in a quick run; name this with --only", errSkipped)
	}
	return nil
}

// buildGrace is how long it may take to fetch and build a peer.
const buildGrace = 5 * time.Minute

// build builds what a module below peers makes: the generator, in peers itself, or a peer's server. What
// cannot be built, for want of a network for instance, is skipped. It is tried once.
func (p *peers) build(ctx context.Context, module string, args ...string) error {
	key := strings.Join(append([]string{module}, args...), " ")
	if err, done := p.built[key]; done {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buildGrace)
	defer cancel()
	build := goBuild(ctx, filepath.Join("peers", module), p.dir+string(filepath.Separator), args...)
	out, err := build.CombinedOutput()
	if err != nil {
		const most = 200
		first, _, _ := strings.Cut(downloads.ReplaceAllString(string(out), ""), "\n")
		err = fmt.Errorf("%w: building %s: %w: %s", errSkipped, build.Dir, err, first[:min(most, len(first))])
	}
	if p.built == nil {
		p.built = map[string]error{}
	}
	p.built[key] = err
	return err
}

// downloads are lines of the go command that tell of its progress.
var downloads = regexp.MustCompile(`(?m)^go: downloading .*\n`)

// buildLoad builds the generator for a peer. That of Redis needs nothing that bench does not, so it
// can be built where those of the others cannot.
func (p *peers) buildLoad(ctx context.Context, name string) error {
	err := p.build(ctx, ".", ".")
	if err == nil || name != redisName {
		return err
	}
	return p.build(ctx, ".", "-tags", "redis_only", ".")
}

// peerJob is what the generator of the peers is to do; peers/job.go says what it means.
type peerJob struct {
	System      string  `json:"system"`
	Addr        string  `json:"addr"`
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
	WarmUp      float64 `json:"warm_up,omitempty"`
	Seconds     float64 `json:"seconds,omitempty"`
	Keys        int     `json:"keys"`
	Each        bool    `json:"each,omitempty"`
	Batch       int     `json:"batch,omitempty"`
	Limit       int64   `json:"limit,omitempty"`
	Window      int64   `json:"window_ms,omitempty"`
}

// peerResult is what came of it.
type peerResult struct {
	PerSecond float64 `json:"per_second"`
	Granted   int     `json:"granted"`
	Denied    int     `json:"denied"`
	Wrong     int     `json:"wrong"`
	Lost      int     `json:"lost"`
	All       int     `json:"all"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	Max       float64 `json:"max_us"`
	LagP99    float64 `json:"lag_p99_us,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// ask has the generator do a job with a peer.
func (p *peers) ask(ctx context.Context, s *subject, job peerJob) (peerResult, error) {
	var got peerResult
	job.System, job.Addr = s.name, s.addr.String()
	text, err := json.Marshal(job)
	if err != nil {
		return got, err
	}
	var problems strings.Builder
	load := exec.CommandContext(ctx, filepath.Join(p.dir, "peers"))
	load.Stdin, load.Stderr = strings.NewReader(string(text)), &problems
	out, err := load.Output()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return got, cause
		}
		return got, fmt.Errorf("asking %s: %w: %s", s.name, err, strings.TrimSpace(problems.String()))
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return got, fmt.Errorf("asking %s: %w", s.name, err)
	}
	switch {
	case got.Wrong > 0 || got.Denied > 0 || got.Lost > 0:
		return got, fmt.Errorf("%s: %d answers were wrong, %d denied, %d did not come; %s", s.name, got.Wrong, got.Denied, got.Lost, got.Error)
	case got.Granted == 0:
		return got, fmt.Errorf("%s: nobody answered", s.name)
	}
	return got, nil
}

// peerLimit is a limit by which all is granted, in a second. It is the most of which a script counts
// each in a microsecond of its own.
const peerLimit = 1_000_000

// measure puts a load on a peer: a closed loop, or an open one if there is a rate.
func (p *peers) measure(ctx context.Context, s *subject, connections, inFlight int, rate float64, slice time.Duration) (sample, error) {
	before, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	r, err := p.ask(ctx, s, peerJob{
		Connections: connections, InFlight: inFlight, Rate: rate, WarmUp: slice.Seconds() / 5, Seconds: slice.Seconds(),
		Keys: 1, Limit: peerLimit, Window: time.Second.Milliseconds(),
	})
	if err != nil {
		return sample{}, err
	}
	after, err := s.cpu()
	return sample{
		PerSecond: r.PerSecond, CPU: float64((after - before).Microseconds()) / float64(r.All),
		P50: r.P50, P99: r.P99, P999: r.P999,
	}, err
}

// crowdConfig is the load of as many clients on the server: lone datagrams of one bucket.
func (c *comparing) crowdConfig(slice time.Duration) generator.Config {
	return generator.Config{
		Keys: []apikey.Key{c.tenant.key}, Flows: crowd, InFlight: crowd, NoBursts: true, For: slice, WarmUp: slice / 5,
	}
}

// withPeer compares the server with a peer, when a crowd of requests is in flight over so many sockets. With fewer
// of these than requests we send them in bursts, and Redis and gRPC gather them as well.
func withPeer(name string, sockets int) func(context.Context, *comparing) (ours, theirs []sample, err error) {
	return func(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
		figure := "cpu_" + name
		if sockets == crowd {
			figure += "_lone"
		}
		if err := c.peers.check(figure); err != nil {
			return nil, nil, err
		}
		peer, err := c.peers.start(ctx, name, 0)
		if err != nil {
			return nil, nil, err
		}
		defer peer.end()
		slice := c.plan.peerSlice()
		cfg := c.crowdConfig(slice)
		cfg.Flows, cfg.NoBursts = sockets, sockets == crowd
		return inTurns(c.plan.Groups, func() (sample, error) { return measure(ctx, c.ours, cfg) },
			func() (sample, error) { return c.peers.measure(ctx, peer, sockets, crowd, 0, slice) })
	}
}

// compareTail compares latencies at a rate that is half of what the best of the peers can do.
func compareTail(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
	if err := c.peers.check("tail"); err != nil {
		return nil, nil, err
	}
	const half = 0.5
	best, most := "", 0.0
	var missing []error
	for _, name := range peerNames {
		can, err := c.peers.most(ctx, name)
		switch {
		case errors.Is(err, errSkipped):
			missing = append(missing, err)
		case err != nil:
			return nil, nil, err
		case can > most:
			best, most = name, can
		}
	}
	if best == "" {
		return nil, nil, fmt.Errorf("%w: %s", errSkipped, reasons(missing...))
	}
	peer, err := c.peers.start(ctx, best, 0)
	if err != nil {
		return nil, nil, err
	}
	defer peer.end()
	slice := c.plan.tailSlice()
	cfg := c.crowdConfig(slice)
	cfg.InFlight, cfg.Rate = 0, most*half
	return inTurns(c.plan.Groups, func() (sample, error) { return measure(ctx, c.ours, cfg) },
		func() (sample, error) { return c.peers.measure(ctx, peer, crowd, 0, cfg.Rate, slice) })
}

// most measures how much a peer can do with a crowd of clients.
func (p *peers) most(ctx context.Context, name string) (float64, error) {
	peer, err := p.start(ctx, name, 0)
	if err != nil {
		return 0, err
	}
	defer peer.end()
	got, err := p.measure(ctx, peer, crowd, crowd, 0, p.plan.peerSlice())
	return got.PerSecond, err
}

// reasons says in one line why something was skipped; each reason once.
func reasons(errs ...error) string {
	var all []string
	for _, err := range errs {
		why := strings.ReplaceAll(strings.TrimPrefix(err.Error(), errSkipped.Error()+": "), "\n", "; ")
		if !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// skip notes why figures are not in the report.
func (r *compareReport) skip(err error, names ...string) {
	if r.Skipped == nil {
		r.Skipped = map[string]string{}
	}
	for _, name := range names {
		r.Skipped[name] = reasons(err)
		fmt.Fprintf(r.lines, "%-19s skipped: %s\n", name, r.Skipped[name])
	}
}
