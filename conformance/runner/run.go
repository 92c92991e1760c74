package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
)

// Config says what to play with whom.
type Config struct {
	// Start starts the client under test, anew for every case.
	Start func(context.Context) (Client, error)
	// Match picks cases by name; nil is for all.
	Match *regexp.Regexp
	// Parallel is how many cases are played at a time; 0 means 8. Cases wait most of
	// the time.
	Parallel int
	// Attempts is how often a case is played until it passes; 0 means 3. The later
	// ones have the machine to themselves.
	Attempts int
	// AllowReseal takes a client that seals every send anew, as other clients of the
	// protocol do: the same identity, other bytes.
	AllowReseal bool
	// Stack is where servers listen; nil means this machine's loopback.
	Stack udp.Stack
	// Done is called with every result, in the order in which cases end; nil is for
	// nobody. Calls do not overlap.
	Done func(Result)
}

// Verdict is what is found out about a client by a case.
type Verdict string

// The verdicts.
const (
	Passed       Verdict = "pass"
	Failed       Verdict = "FAIL"
	Skipped      Verdict = "skip"         // the client says that it cannot do this, or the machine cannot
	Inconclusive Verdict = "inconclusive" // it failed on a machine that was late
)

// A Result is the verdict of one case.
type Result struct {
	Name     string        `json:"name"`
	About    string        `json:"about"`
	Section  string        `json:"section"`
	Verdict  Verdict       `json:"verdict"`
	Reason   string        `json:"reason,omitempty"`   // why it was skipped, or how late the machine was
	Findings []Finding     `json:"findings,omitempty"` // of the last attempt
	Attempts int           `json:"attempts"`
	Late     time.Duration `json:"late_ns"` // the machine, at worst, in the last attempt
	Took     time.Duration `json:"took_ns"` // all attempts
}

// A Summary counts verdicts.
type Summary struct {
	Client                                string // the name in its hello
	Passed, Failed, Skipped, Inconclusive int
}

// Conforms reports whether nothing failed or stayed open, and something passed.
func (s Summary) Conforms() bool { return s.Failed == 0 && s.Inconclusive == 0 && s.Passed > 0 }

// Names returns the names of the cases that are played in real time, in order.
func Names() ([]string, error) {
	cases, err := allCases()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range cases {
		names = append(names, cases[i].name)
	}
	return names, nil
}

// Run plays all cases that match. The error is that of a client that cannot be
// started or says nothing at all, of a machine without loopback, or ctx's.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	cases, err := allCases()
	if err != nil {
		return Summary{}, err
	}
	if cfg.Match != nil {
		cases = slices.DeleteFunc(cases, func(c testCase) bool { return !cfg.Match.MatchString(c.name) })
	}
	if len(cases) == 0 {
		return Summary{}, errors.New("runner: no case has a name that matches")
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 3
	}
	if cfg.Stack == nil {
		cfg.Stack = udp.Host()
	}
	r := &run{cfg: cfg}
	if r.hello, err = introduce(ctx, &cfg); err != nil {
		return Summary{}, err
	}
	r.summary.Client = r.hello.Name
	again, err := r.together(ctx, cases)
	if err != nil {
		return r.summary, err
	}
	for _, t := range again {
		for t.result.Attempts < cfg.Attempts && t.result.Verdict != Passed {
			if err := r.play(ctx, t); err != nil {
				return r.summary, err
			}
		}
		r.end(t)
	}
	return r.summary, nil
}

// run is a run under way.
type run struct {
	cfg   Config
	hello conformance.Reply

	mu      sync.Mutex
	summary Summary
}

// tried is a case and what came of it so far.
type tried struct {
	c      *testCase
	result Result
}

// introduce starts the client once to hear what it can do.
func introduce(ctx context.Context, cfg *Config) (conformance.Reply, error) {
	c, err := cfg.Start(ctx)
	if err != nil {
		return conformance.Reply{}, fmt.Errorf("runner: the client cannot be started: %w", err)
	}
	defer c.End()
	ctx, cancel := context.WithTimeoutCause(ctx, helloWithin, fmt.Errorf("runner: the client has not said hello within %v", helloWithin))
	defer cancel()
	lines := make(chan spoken, 1)
	go listenTo(ctx, c, lines)
	select {
	case l := <-lines:
		switch {
		case l.err != nil:
			return conformance.Reply{}, fmt.Errorf("runner: the client says no hello: %w", sayEnd(l.err))
		case l.reply.Event != "hello":
			return conformance.Reply{}, fmt.Errorf("runner: the client says %q before hello", l.reply.Event)
		}
		return l.reply, nil
	case <-ctx.Done():
		return conformance.Reply{}, context.Cause(ctx)
	}
}

// together plays the cases beside one another, and returns those that did not pass
// and may be tried again.
func (r *run) together(ctx context.Context, cases []testCase) (again []*tried, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *testCase)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(r.cfg.Parallel, len(cases)) {
		wg.Go(func() {
			for c := range next {
				t := &tried{c: c, result: Result{Name: c.name, About: c.about, Section: c.section}}
				if err := r.play(ctx, t); err != nil {
					cancel(err)
					continue
				}
				if t.result.Verdict == Passed || t.result.Verdict == Skipped || r.cfg.Attempts == 1 {
					r.end(t)
					continue
				}
				mu.Lock()
				again = append(again, t)
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		next <- &cases[i]
	}
	close(next)
	wg.Wait()
	slices.SortFunc(again, func(a, b *tried) int { // the order of the cases
		return slices.IndexFunc(cases, func(c testCase) bool { return c.name == a.c.name }) -
			slices.IndexFunc(cases, func(c testCase) bool { return c.name == b.c.name })
	})
	if ctx.Err() != nil {
		return again, context.Cause(ctx)
	}
	return again, nil
}

// play plays a case once more.
func (r *run) play(ctx context.Context, t *tried) error {
	if why := t.c.fits(&r.hello); why != "" {
		t.result.Verdict, t.result.Reason = Skipped, why
		return nil
	}
	auth, err := t.c.mode(&r.hello)
	if err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	began := time.Now()
	found, late, err := t.c.attempt(ctx, r.cfg.Stack, r.cfg.Start, auth, !r.cfg.AllowReseal)
	t.result.Took += time.Since(began)
	if errors.Is(err, errNoAddress) {
		t.result.Verdict, t.result.Reason = Skipped, errNoAddress.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("runner: %s: %w", t.c.name, err)
	}
	t.result.Attempts++
	before := t.result.Findings
	t.result.Findings, t.result.Late, t.result.Reason = found, late, ""
	switch bearable := t.c.bearable(); {
	case len(found) == 0:
		t.result.Verdict = Passed
		if len(before) > 0 {
			t.result.Reason = fmt.Sprintf("at attempt %d; the one before it found %v", t.result.Attempts, before[0])
		}
	case late > bearable:
		t.result.Verdict = Inconclusive
		t.result.Reason = fmt.Sprintf("the machine was %v late, where %v can be borne", late.Round(time.Millisecond), bearable)
	default:
		t.result.Verdict = Failed
	}
	return nil
}

// bearable is how late a machine may be for a failure to be the client's.
func (c *testCase) bearable() time.Duration {
	if c.setUp != nil {
		return helloWithin / 4
	}
	return time.Duration(c.trace.Margin*c.scale) / 2
}

// end tells a result.
func (r *run) end(t *tried) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch t.result.Verdict {
	case Passed:
		r.summary.Passed++
	case Failed:
		r.summary.Failed++
	case Skipped:
		r.summary.Skipped++
	default:
		r.summary.Inconclusive++
	}
	if r.cfg.Done != nil {
		r.cfg.Done(t.result)
	}
}
