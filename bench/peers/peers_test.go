//go:build !redis_only

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/gubernator-io/gubernator/v2"
	"google.golang.org/grpc"
)

// What bench writes and reads is what this program reads and writes; bench has a test with the same files.
func TestFiles(t *testing.T) {
	for path, into := range map[string]any{"testdata/job.json": &Job{}, "testdata/result.json": &Result{}} {
		text, err := os.ReadFile(path)
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

func TestJobs(t *testing.T) {
	good := Job{System: "redis", Connections: 2, InFlight: 4, Seconds: 1, Keys: 1, Limit: 10, Window: 1000}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(j *Job){
		"system":      func(j *Job) { j.System = "other" },
		"connections": func(j *Job) { j.Connections = 0 },
		"in flight":   func(j *Job) { j.InFlight = 1 },
		"both loops":  func(j *Job) { j.Rate = 1 },
		"rate":        func(j *Job) { j.InFlight, j.Rate = 0, -1 },
		"warm-up":     func(j *Job) { j.WarmUp = -1 },
		"seconds":     func(j *Job) { j.Seconds = 0 },
		"keys":        func(j *Job) { j.Keys = 0 },
		"batch":       func(j *Job) { j.Batch = 2 },
		"limit":       func(j *Job) { j.Limit = 0 },
		"precision":   func(j *Job) { j.Limit = j.Window*1000 + 1 },
	} {
		j := good
		change(&j)
		if err := j.check(); err == nil {
			t.Errorf("%s: it takes %+v", name, j)
		}
	}
	for _, text := range []string{`{"sistem": "redis"}`, `{"system": "none"}`, ""} {
		if err := serve(t.Context(), strings.NewReader(text), io.Discard); err == nil {
			t.Errorf("it does %q", text)
		}
	}
}

// fakeRedis answers each request for a key as it is told.
type fakeRedis struct {
	addr   string
	answer func(n int, key string) (line string, ok bool) // n: how many came before, on all connections; not ok: hang up

	mu   sync.Mutex
	keys map[string]int
	n    int
}

func startFake(t *testing.T, answer func(n int, key string) (string, bool)) *fakeRedis {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeRedis{addr: l.Addr().String(), answer: answer, keys: map[string]int{}}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); f.serve(conn) })
		}
	})
	return f
}

func (f *fakeRedis) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	number := func(kind string) int {
		line, err := in.ReadString('\n')
		n, bad := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, kind)))
		if err != nil || bad != nil || !strings.HasPrefix(line, kind) {
			return -1
		}
		return n
	}
	for {
		var words []string
		for range number("*") {
			n := number("$")
			word := make([]byte, max(0, n)+2)
			if _, err := io.ReadFull(in, word); n < 0 || err != nil || !bytes.HasSuffix(word, []byte("\r\n")) {
				return
			}
			words = append(words, string(word[:n]))
		}
		switch {
		case len(words) == 3 && words[0] == "SCRIPT" && words[2] == gcra:
			fmt.Fprint(conn, "$4\r\nabcd\r\n")
		case len(words) == 6 && words[0] == "EVALSHA" && words[1] == "abcd" && words[2] == "1":
			f.mu.Lock()
			line, ok := f.answer(f.n, words[3])
			f.keys[words[3]]++
			f.n++
			f.mu.Unlock()
			if !ok {
				return
			}
			fmt.Fprint(conn, line)
		default:
			return
		}
	}
}

// Each key is asked for once, over all connections, and answers are told apart.
func TestRedisEach(t *testing.T) {
	const keys = 1000
	f := startFake(t, func(n int, _ string) (string, bool) {
		switch n % 4 {
		case 0:
			return ":0\r\n", true
		case 1:
			return "-ERR broken\r\n", true
		}
		return ":1\r\n", true
	})
	r, err := do(t.Context(), &Job{System: "redis", Addr: f.addr, Connections: 3, InFlight: 16, Keys: keys, Each: true, Limit: 1, Window: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Granted != keys/2 || r.Denied != keys/4 || r.Wrong != keys/4 || r.All != keys || !strings.Contains(r.Error, "broken") || r.PerSecond <= 0 {
		t.Errorf("%+v", r)
	}
	for key, n := range f.keys {
		if n != 1 {
			t.Errorf("key %s was asked for %d times", key, n)
		}
	}
	if len(f.keys) != keys {
		t.Errorf("%d keys were asked for", len(f.keys))
	}
}

// A server that answers late is seen by all that were due meanwhile.
func TestRedisOpen(t *testing.T) {
	const held, rate = 200, 2000.0
	var lines string
	f := startFake(t, func(n int, _ string) (string, bool) {
		if lines += ":1\r\n"; n < held {
			return "", true
		}
		defer func() { lines = "" }()
		return lines, true
	})
	r, err := do(t.Context(), &Job{System: "redis", Addr: f.addr, Connections: 1, Rate: rate, Seconds: 0.5, Keys: 3, Limit: 1, Window: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Granted != f.n || r.All != f.n || r.Lost != 0 || len(f.keys) != 3 {
		t.Errorf("%+v of %d, with keys %v", r, f.n, f.keys)
	}
	// The first waited for some 200 others, and their latencies lie evenly below: they are a fifth of all.
	if least := held / rate * 1e6 / 2; r.Max < least || r.P99 < least/2 {
		t.Errorf("%+v; the longest took at least %v us", r, least)
	}
}

func TestRedisHangsUp(t *testing.T) {
	for _, job := range []Job{
		{InFlight: 4, Seconds: 10},
		{Rate: 1000, Seconds: 10},
	} {
		f := startFake(t, func(n int, _ string) (string, bool) { return ":1\r\n", n < 10 })
		job.System, job.Addr, job.Connections, job.Keys, job.Limit, job.Window = "redis", f.addr, 1, 1, 1, 1000
		if _, err := do(t.Context(), &job); err == nil {
			t.Errorf("nobody notices, with %+v", job)
		}
	}
}

// The script itself, in a Redis: what it grants to all together is the limit at once, and what has been earned.
func TestScript(t *testing.T) {
	addr := startRedis(t)
	for _, c := range []struct {
		limit, window int64 // ms
		seconds       float64
	}{
		{5, time.Hour.Milliseconds(), 0.2},
		{10, 100, 0.4},
	} {
		before := time.Now()
		r, err := do(t.Context(), &Job{
			System: "redis", Addr: addr, Connections: 4, InFlight: 16, Seconds: c.seconds, Keys: 1, Limit: c.limit, Window: c.window,
		})
		took := time.Since(before)
		if err != nil {
			t.Fatal(err)
		}
		earned := func(span float64) int { return int(c.limit) + int(span*1000*float64(c.limit)/float64(c.window)) }
		const late = 0.5 // of the time, for a machine that is held up
		if r.Granted > earned(took.Seconds()) || r.Granted < earned(c.seconds*late) || r.Denied == 0 || r.Wrong != 0 {
			t.Errorf("%d in %d ms: %+v", c.limit, c.window, r)
		}
		// Another limit is another key's; this one is gone when nothing of it is left.
		if out := command(t, addr, "PTTL", "k0000000"); out <= 0 || out > int(c.window) {
			t.Errorf("%d in %d ms: the key lives for %d ms", c.limit, c.window, out)
		}
		if command(t, addr, "DEL", "k0000000") > 1 {
			t.Error("there is another key")
		}
	}
}

// startRedis starts a Redis, if the machine has it.
func startRedis(t *testing.T) (addr string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("there is no redis-server on this machine")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	ctx, cancel := context.WithCancel(context.Background())
	redis := exec.CommandContext(ctx, program, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no")
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); redis.Wait() })
	return addr
}

// command has Redis do something, and returns the number that it says.
func command(t *testing.T, addr string, words ...string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " "))
	line, err := bufio.NewReader(conn).ReadString('\n')
	n, bad := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, ":")))
	if err != nil || bad != nil {
		t.Fatalf("%v: %q, %v", words, line, err)
	}
	return n
}

// calls counts by key what gRPC servers were asked for.
type calls struct {
	mu   sync.Mutex
	keys map[string]int
	n    int
}

func (c *calls) count(key string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key]++
	c.n++
	return c.n
}

type fakeGubernator struct {
	gubernator.UnimplementedV1Server
	calls
	starts int // answers with errors, before it works
}

func (f *fakeGubernator) GetRateLimits(_ context.Context, r *gubernator.GetRateLimitsReq) (*gubernator.GetRateLimitsResp, error) {
	out := &gubernator.GetRateLimitsResp{}
	for _, one := range r.Requests {
		got := &gubernator.RateLimitResp{}
		switch n := f.count(one.UniqueKey); {
		case one.Hits != 1 || one.Limit != 7 || one.Duration != 9000 || one.Name == "":
			return nil, errors.New("another limit")
		case n <= f.starts || one.UniqueKey == "k13":
			got.Error = "not ready"
		case one.UniqueKey == "k17":
			got.Status = gubernator.Status_OVER_LIMIT
		}
		out.Responses = append(out.Responses, got)
	}
	return out, nil
}

type fakeEnvoy struct {
	calls
	starts int
}

func (f *fakeEnvoy) ShouldRateLimit(_ context.Context, r *envoy.RateLimitRequest) (*envoy.RateLimitResponse, error) {
	out := &envoy.RateLimitResponse{}
	for _, one := range r.Descriptors {
		got := &envoy.RateLimitResponse_DescriptorStatus{Code: envoy.RateLimitResponse_OK, CurrentLimit: &envoy.RateLimitResponse_RateLimit{}}
		key := one.Entries[0].Value
		switch n := f.count(key); {
		case r.Domain != domain || one.Entries[0].Key != descriptor:
			return nil, errors.New("another limit")
		case n <= f.starts || key == "k13":
			got.CurrentLimit = nil
		case key == "k17":
			got.Code = envoy.RateLimitResponse_OVER_LIMIT
		}
		out.Statuses = append(out.Statuses, got)
	}
	return out, nil
}

// The systems with gRPC: they are awaited, each key is asked for once in batches, and answers are told
// apart; an open loop has as many answers as requests.
func TestCalls(t *testing.T) {
	const starts = 3
	g := &fakeGubernator{calls: calls{keys: map[string]int{}}, starts: starts}
	e := &fakeEnvoy{calls: calls{keys: map[string]int{}}, starts: starts}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	gubernator.RegisterV1Server(server, g)
	envoy.RegisterRateLimitServiceServer(server, e)
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); ended.Wait() })
	for system, seen := range map[string]*calls{"gubernator": &g.calls, "envoy": &e.calls} {
		const keys = 100
		job := Job{System: system, Addr: l.Addr().String(), Connections: 2, InFlight: 5, Keys: keys, Each: true, Batch: 8, Limit: 7, Window: 9000}
		r, err := do(t.Context(), &job)
		if err != nil {
			t.Fatal(err)
		}
		if r.Granted != keys-2 || r.Denied != 1 || r.Wrong != 1 || r.All != keys || r.Error == "" {
			t.Errorf("%s: %+v", system, r)
		}
		probes := seen.keys["k-1"]
		delete(seen.keys, "k-1")
		if probes != starts+job.Connections || len(seen.keys) != keys || seen.n != keys+probes {
			t.Errorf("%s: asked for %d keys, %d in all, with %d probes", system, len(seen.keys), seen.n, probes)
		}
		job.InFlight, job.Each, job.Batch, job.Keys, job.Rate, job.Seconds, job.WarmUp = 0, false, 0, 10, 1000, 0.2, 0.1
		if r, err = do(t.Context(), &job); err != nil {
			t.Fatal(err)
		}
		if r.Granted == 0 || r.Granted >= r.All || r.Denied+r.Wrong+r.Lost != 0 || r.P50 > r.P99 || r.P99 > r.Max || r.LagP99 == 0 {
			t.Errorf("%s: %+v", system, r)
		}
	}
}

// Who is not there is missed.
func TestNobody(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for system := range systems {
		job := Job{System: system, Addr: "127.0.0.1:1", Connections: 1, InFlight: 1, Seconds: 1, Keys: 1, Limit: 1, Window: 1000}
		if _, err := do(ctx, &job); err == nil {
			t.Errorf("%s answers", system)
		}
	}
}

// Parts of a list are all of it, in order, and alike in size.
func TestChunks(t *testing.T) {
	list := []int64{1, 2, 3, 4, 5, 6, 7}
	for n, want := range map[int]string{1: "[[1 2 3 4 5 6 7]]", 3: "[[1 2 3] [4 5] [6 7]]", 10: "[[1] [2] [3] [4] [5] [6] [7]]"} {
		var got [][]int64
		for part := range chunks(list, n) {
			got = append(got, part)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d: %v", n, got)
		}
	}
}
