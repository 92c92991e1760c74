package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
)

// What is written to the generator of the peers, and read from it, is what it reads and writes; it has a test
// with the same files.
func TestPeerFiles(t *testing.T) {
	for path, into := range map[string]any{"job.json": &peerJob{}, "result.json": &peerResult{}} {
		text, err := os.ReadFile(filepath.Join("peers", "testdata", path))
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if back, err := json.Marshal(into); err != nil || string(back) != strings.TrimSpace(string(text)) {
			t.Errorf("%s: %v, it comes back as %s", path, err, back)
		}
	}
}

// A quick run has no peers in it, unless one is named; neither is built for it.
func TestPeersInQuickRun(t *testing.T) {
	c := &comparing{plan: comparePlan{Quick: true}}
	c.peers = &peers{plan: c.plan, dir: t.TempDir()}
	for i := range peerComparisons {
		_, _, err := peerComparisons[i].run(t.Context(), c)
		if !errors.Is(err, errSkipped) {
			t.Errorf("%v: %v", peerComparisons[i].names(), err)
		}
	}
	report := compareReport{lines: io.Discard}
	if err := c.measureSystems(t.Context(), &report); err != nil || report.Skipped[systemsName] == "" || len(report.Systems) > 0 {
		t.Errorf("%v, %+v", err, report)
	}
	if len(c.peers.built) > 0 {
		t.Errorf("it built %v", c.peers.built)
	}
	c.peers.plan.Only = []string{"cpu_redis", "junk"}
	if err := c.peers.check("cpu_redis"); err != nil {
		t.Error(err)
	}
	if err := c.peers.check("tail"); !errors.Is(err, errSkipped) {
		t.Error(err)
	}
}

// What cannot be built or found is skipped, with what was in the way, and is tried once.
func TestPeersThatAreMissing(t *testing.T) {
	p := &peers{dir: t.TempDir()}
	for range 2 {
		err := p.build(t.Context(), "envoy", "./nowhere")
		if !errors.Is(err, errSkipped) || !strings.Contains(err.Error(), "nowhere") {
			t.Error(err)
		}
	}
	p.built = map[string]error{". .": nil, "envoy tool": nil, "gubernator tool": errors.Join(errSkipped, errors.New("no network"))}
	t.Setenv("PATH", t.TempDir())
	for _, name := range peerNames {
		_, err := p.start(t.Context(), name, 0)
		if !errors.Is(err, errSkipped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// With nobody to compare with, the tail is skipped too, and says why for each.
	c := &comparing{peers: p}
	_, _, err := compareTail(t.Context(), c)
	if !errors.Is(err, errSkipped) || !strings.Contains(err.Error(), "redis-server") || !strings.Contains(err.Error(), "no network") {
		t.Error(err)
	}
}

// What ended before it served is skipped, with what it had to say; nothing of it is left.
func TestPeerThatEnds(t *testing.T) {
	if _, err := exec.LookPath("env"); err != nil {
		t.Skip("there is no env on this machine")
	}
	s := newServing(t.TempDir(), "test")
	defer s.end()
	at, err := free(1)
	if err != nil {
		t.Fatal(err)
	}
	err = s.serve(t.Context(), at[0], []string{"WHY=broken"}, "sh", "-c", "echo it is $WHY >&2")
	if !errors.Is(err, errSkipped) || !strings.Contains(err.Error(), "it is broken") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := s.serve(ctx, at[0], nil, "sleep", "1000"); !errors.Is(err, why) {
		t.Error(err)
	}
}

// What serves is taken for serving; its memory and its processor time are known, and it ends.
func TestPeerThatServes(t *testing.T) {
	p := &peers{dir: t.TempDir(), built: map[string]error{". .": nil}}
	redis, err := p.start(t.Context(), redisName, 0)
	if errors.Is(err, errSkipped) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			redis.end()
		}
	}()
	if bytes, err := redis.resident(); err != nil || bytes < 1<<20 || bytes > 1<<30 {
		t.Errorf("%v bytes, %v", bytes, err)
	}
	if _, err := redis.cpu(); err != nil {
		t.Error(err)
	}
	redis.end()
	ended = true
	if conn, err := net.Dial("tcp", redis.addr.String()); err == nil {
		conn.Close()
		t.Error("it still serves")
	}
	if _, err := redis.resident(); err == nil {
		t.Error("what has ended has memory")
	}
}

// Where bench was built, the generator for Redis can be built too, without a network: it needs the same.
func TestRedisNeedsNoMore(t *testing.T) {
	var versions [2][]string
	for i, path := range []string{"go.mod", filepath.Join("peers", "go.mod")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		versions[i] = regexp.MustCompile(`(github\.com/HdrHistogram/hdrhistogram-go|golang\.org/x/sys) v\S+`).FindAllString(string(text), -1)
	}
	if len(versions[0]) != 2 || !slices.Equal(versions[0], versions[1]) {
		t.Errorf("bench has %v, the generator %v", versions[0], versions[1])
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	t.Setenv("GOPROXY", "off")
	p := &peers{dir: t.TempDir(), built: map[string]error{". .": fmt.Errorf("%w: no network", errSkipped)}}
	if err := p.buildLoad(t.Context(), redisName); err != nil {
		t.Error(err)
	}
	if err := p.buildLoad(t.Context(), envoyName); !errors.Is(err, errSkipped) {
		t.Error(err)
	}
}

func TestFree(t *testing.T) {
	at, err := free(20)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range at {
		if !a.Addr().IsLoopback() || a.Port() == 0 || slices.Contains(at[:i], a) {
			t.Errorf("%v of %v", a, at)
		}
	}
}

func TestResident(t *testing.T) {
	for text, want := range map[string]float64{"VmPeak:\t   9 kB\nVmRSS:\t  1234 kB\nThreads: 3\n": 1234, "Threads: 3\n": -1, "VmRSS: no kB": -1} {
		if kb, err := residentIn([]byte(text)); (err != nil) != (want < 0) || err == nil && kb != want {
			t.Errorf("%q: %v, %v", text, kb, err)
		}
	}
}

// Memory is measured with as many buckets as keys, each consumed from; a server that denies one is noticed.
func TestFill(t *testing.T) {
	binary, err := buildWeir(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	one, err := newTenant("bench", 1, 0) // by its quota at most 65536
	if err != nil {
		t.Fatal(err)
	}
	server, err := startWeir(t.Context(), binary, one)
	if err != nil {
		t.Fatal(err)
	}
	defer server.end()
	if err := fill(server, one.key, 10*mostResources+1); err != nil {
		t.Error(err)
	}
	if err := fill(server, one.key, int(apikey.DefaultQuotas().RateBuckets)+1); err == nil {
		t.Error("more buckets than the quota allows are granted")
	}
}

// A load that asks so many at once with so many sockets, for each system.
func TestSystemFigures(t *testing.T) {
	type asked struct {
		sockets, inFlight int
		rate              float64
	}
	for _, shared := range []bool{false, true} {
		var got []asked
		ended := 0
		s := &system{
			name: "x", few: shared,
			start: func(context.Context) (*subject, error) { return &subject{end: func() { ended++ }}, nil },
			load: func(_ context.Context, _ *subject, sockets, inFlight int, rate float64) (sample, error) {
				got = append(got, asked{sockets, inFlight, rate})
				return sample{PerSecond: float64(10 * inFlight), CPU: float64(inFlight), P50: float64(len(got)), P99: 2, P999: 3, Lost: 0.25}, nil
			},
			memory: func(context.Context) (float64, error) { return 5 << 20, nil },
		}
		row, err := s.figures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []asked{{64, 64, 0}, {256, 256, 0}, {1, 1, 0}, {64, 0, 1280}}
		sockets := "one each"
		if shared {
			want = []asked{{4, 64, 0}, {4, 256, 0}, {1, 1, 0}, {4, 0, 1280}}
			sockets = "4"
		}
		if !slices.Equal(got, want) || ended != 1 {
			t.Errorf("asked %v, ended %d times", got, ended)
		}
		if found := (systemRow{"x", sockets, 640, 2560, 64, 256, latencies{3, 2, 3}, 1280, latencies{4, 2, 3}, 0.25, 5}); *row != found {
			t.Errorf("%+v", row)
		}
		s.memory = func(context.Context) (float64, error) { return 0, fmt.Errorf("%w: gone", errSkipped) }
		if _, err := s.figures(t.Context()); !errors.Is(err, errSkipped) {
			t.Error(err)
		}
	}
}

// The report has what was skipped and why, and the systems, in both forms; neither is a failure.
func TestPeersInReport(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var lines, out strings.Builder
		r := compareReport{Plan: comparePlan{JSON: asJSON}, Ratios: map[string]float64{}, lines: &lines}
		r.skip(fmt.Errorf("%w: no %s", errSkipped, "network"), "cpu_envoy", "tail")
		r.addSystem(&systemRow{System: "redis", Sockets: "4", At64: 12345, Memory: 678})
		if err := r.end(&out); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"cpu_envoy +skipped: no network", "tail +skipped: no network", "redis +4 +12345 .* 678\n"} {
			if !regexp.MustCompile(line).MatchString(lines.String()) {
				t.Errorf("there is no %q in %s", line, lines.String())
			}
		}
		if !asJSON {
			continue
		}
		var back struct {
			Skipped map[string]string `json:"skipped"`
			Systems []map[string]any  `json:"systems"`
		}
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"cpu_envoy": "no network", "tail": "no network"}; !reflect.DeepEqual(back.Skipped, want) {
			t.Errorf("skipped: %v", back.Skipped)
		}
		if len(back.Systems) != 1 || back.Systems[0]["per_second_64"] != 12345.0 || back.Systems[0]["memory_mb"] != 678.0 {
			t.Errorf("systems: %v", back.Systems)
		}
	}
}

// Where all that was asked for was skipped nothing is within its gate.
func TestAllSkipped(t *testing.T) {
	r := compareReport{lines: io.Discard}
	r.skip(fmt.Errorf("%w: no network", errSkipped), "cpu_envoy")
	if err := r.end(io.Discard); err == nil || errors.Is(err, errGate) {
		t.Errorf("nothing was measured, and it says %v", err)
	}
	r.addSystem(&systemRow{System: "redis", Sockets: "4"})
	if err := r.end(io.Discard); err != nil {
		t.Errorf("a system was measured, and it says %v", err)
	}
}

// The generator of the peers, with a Redis, if both can be had without a network.
func TestAskPeer(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the generator")
	}
	t.Setenv("GOPROXY", "off")
	p := &peers{dir: t.TempDir()}
	redis, err := p.start(t.Context(), redisName, 0)
	if errors.Is(err, errSkipped) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer redis.end()
	job := peerJob{Connections: 2, InFlight: 4, Seconds: 0.1, Keys: 1, Limit: peerLimit, Window: 1000}
	if r, err := p.ask(t.Context(), redis, job); err != nil || r.Granted == 0 || r.PerSecond == 0 || r.P50 == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	job.Limit, job.Window = 1, 3_600_000
	if _, err := p.ask(t.Context(), redis, job); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("a denial is taken for a grant: %v", err)
	}
	job.Limit = 0
	if _, err := p.ask(t.Context(), redis, job); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("what the generator says is wrong is not told: %v", err)
	}
}
