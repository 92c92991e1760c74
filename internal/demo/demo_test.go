package demo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/children"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

var (
	buildOnce sync.Once
	binaryDir string
	binaryIs  string
	buildErr  error
)

// binary builds the weir command, once for all tests.
func binary(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		//nolint:usetesting // it is for all tests: TestMain removes it
		if binaryDir, buildErr = os.MkdirTemp("", "weir-demo-test-"); buildErr == nil {
			binaryIs, buildErr = children.Build(context.Background(), binaryDir)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return binaryIs
}

// quick is a pace for tests: everything happens, and little of it.
var quick = Pace{Pause: -1, BothAlive: 400 * time.Millisecond, Dead: 400 * time.Millisecond, Dropped: 400 * time.Millisecond}

// recorder is a narrator that keeps what it is told, and may do something then.
type recorder struct {
	t      *testing.T
	events []Event
	on     func(Event)
	pids   []int
	dir    string
}

func (r *recorder) Tell(e Event) {
	r.events = append(r.events, e)
	switch e := e.(type) {
	case ChildServes:
		r.pids = append(r.pids, e.PID)
	case KeyMade:
		r.dir = filepath.Dir(e.File)
		if info, err := os.Stat(r.dir); err != nil || info.Mode().Perm()&0o077 != 0 {
			r.t.Errorf("the directory with the key: %v, %v", info.Mode(), err)
		}
	case Checked:
		if !e.Kept && !e.Timing {
			r.t.Errorf("not kept: %s (%s)", e.Promise, e.Got)
		}
	}
	if r.on != nil {
		r.on(e)
	}
}

// nothingLeft checks that the demo's processes and files are gone.
func (r *recorder) nothingLeft() {
	r.t.Helper()
	for _, pid := range r.pids {
		if alive(pid) {
			r.t.Errorf("process %d is left", pid)
		}
	}
	if r.dir == "" {
		return
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, fs.ErrNotExist) {
		r.t.Errorf("the directory is left: %v", err)
	}
}

func TestWhole(t *testing.T) {
	r := &recorder{t: t}
	result, err := Run(t.Context(), Config{Binary: binary(t), Pace: quick, Narrator: r})
	if err != nil && (!errors.Is(err, ErrPromise) || !onlyTiming(result)) {
		t.Fatal(err)
	}
	r.nothingLeft()
	if len(r.pids) != 3 || len(result.Checks) != 7 || len(result.Phases) != phases {
		t.Errorf("%d processes, %d checks, %d phases", len(r.pids), len(result.Checks), len(result.Phases))
	}
	for _, p := range result.Phases {
		if p.Decisions == 0 || p.Failed > 0 || p.P50 <= 0 || p.P99 < p.P50 {
			t.Errorf("phase %d: %+v", p.Phase, p)
		}
	}
	// This is no matter of speed: while the dead server is known, the policy gives
	// the live one's answer no sooner.
	if wait := 20 * time.Millisecond; result.Phases[OldestDead].P50 < wait {
		t.Errorf("with the oldest dead the median is %v, below %v", result.Phases[OldestDead].P50, wait)
	}
	if acts := actsOf(r.events); acts != "123456" {
		t.Errorf("acts %s", acts)
	}
}

func onlyTiming(r *Result) bool {
	for _, c := range r.Checks {
		if !c.Kept && !c.Timing {
			return false
		}
	}
	return true
}

func actsOf(events []Event) string {
	var s strings.Builder
	for _, e := range events {
		if a, ok := e.(ActBegins); ok {
			s.WriteByte('0' + byte(a.Act))
		}
	}
	return s.String()
}

// Wherever it is interrupted, nothing is left.
func TestInterrupted(t *testing.T) {
	isAct := func(a Act) func(Event) bool {
		return func(e Event) bool { b, ok := e.(ActBegins); return ok && b.Act == a }
	}
	for name, at := range map[string]func(Event) bool{
		"at once":         func(e Event) bool { _, ok := e.(Opening); return ok },
		"with a key":      func(e Event) bool { _, ok := e.(KeyMade); return ok },
		"with one child":  func(e Event) bool { _, ok := e.(ChildServes); return ok },
		"with a client":   isAct(ActTokens),
		"under a guard":   func(e Event) bool { _, ok := e.(Reported); return ok },
		"under load":      func(e Event) bool { _, ok := e.(LoadRow); return ok },
		"after the kill":  func(e Event) bool { _, ok := e.(Killed); return ok },
		"before the drop": func(e Event) bool { _, ok := e.(Removed); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			r := &recorder{t: t, on: func(e Event) {
				if at(e) {
					cancel(cause)
				}
			}}
			_, err := Run(ctx, Config{Binary: binary(t), Pace: quick, Narrator: r})
			if !errors.Is(err, cause) {
				t.Errorf("error %v", err)
			}
			r.nothingLeft()
		})
	}
}

func TestTooSlow(t *testing.T) {
	pace := quick
	pace.Limit = time.Nanosecond
	r := &recorder{t: t}
	_, err := Run(t.Context(), Config{Binary: binary(t), Pace: pace, Narrator: r})
	if err == nil || !strings.Contains(err.Error(), "not done after 1ns") {
		t.Errorf("error %v", err)
	}
	r.nothingLeft()
}

// A child that ends by itself ends the demo with the reason.
func TestLostChild(t *testing.T) {
	r := &recorder{t: t}
	dns := 0
	r.on = func(e Event) {
		switch e := e.(type) {
		case ChildServes:
			if e.Name == "DNS" {
				dns = e.PID
			}
		case LoadRow:
			p, err := os.FindProcess(dns)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Error(err)
			}
			r.on = nil
		}
	}
	pace := quick
	pace.BothAlive = 2 * time.Second
	_, err := Run(t.Context(), Config{Binary: binary(t), Pace: pace, Narrator: r})
	var lost *children.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "the DNS server ended by itself") || !strings.Contains(err.Error(), "msg=serving") {
		t.Errorf("error %v", err)
	}
	r.nothingLeft()
}

func TestBrokenBinary(t *testing.T) {
	r := &recorder{t: t}
	_, err := Run(t.Context(), Config{Binary: filepath.Join(t.TempDir(), "absent"), Pace: quick, Narrator: r})
	if err == nil || !strings.Contains(err.Error(), "cannot start an r-server") {
		t.Errorf("a binary that is not there: %v", err)
	}
	r.nothingLeft()
	other, err := exec.LookPath("go") // does not know the command, says so and ends
	if err != nil {
		t.Fatal(err)
	}
	r = &recorder{t: t}
	_, err = Run(t.Context(), Config{Binary: other, Pace: quick, Narrator: r})
	if err == nil || !strings.Contains(err.Error(), "an r-server ended by itself with exit status 2; its log: go serve: unknown command") {
		t.Errorf("another program: %v", err)
	}
	r.nothingLeft()
}

// What --keep prints is enough for a client, and the end is no error.
func TestKeep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &recorder{t: t}
	r.on = func(e Event) {
		k, ok := e.(Keeping)
		if !ok {
			return
		}
		defer cancel()
		if len(k.Servers) != 2 || k.Servers[0].Name != "B" || k.Servers[1].Name != "C" {
			t.Errorf("kept: %+v", k.Servers)
		}
		for _, s := range k.Servers {
			r.pids = append(r.pids, s.PID)
			if !alive(s.PID) {
				t.Errorf("process %d is dead", s.PID)
			}
		}
		useKept(t, k)
	}
	if _, err := Run(ctx, Config{Binary: binary(t), Pace: quick, Narrator: r, Keep: true}); err != nil && !errors.Is(err, ErrPromise) {
		t.Fatal(err)
	}
	r.nothingLeft()
}

func useKept(t *testing.T, k Keeping) {
	t.Helper()
	text, err := os.ReadFile(k.KeyFile)
	if err != nil {
		t.Error(err)
		return
	}
	key, err := apikey.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		t.Error(err)
		return
	}
	resolver, err := discovery.NewDNS(k.Resolver)
	if err != nil {
		t.Error(err)
		return
	}
	client, err := weir.Dial(t.Context(), weir.Config{Key: key, Domain: k.Domain, Resolver: resolver})
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	d, err := client.Acquire(t.Context(), take(1, weir.Bucket("kept", 1, time.Minute)))
	if err != nil || !d.Granted() {
		t.Errorf("%v, %v", d, err)
	}
}
