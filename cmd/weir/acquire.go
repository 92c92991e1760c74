package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir"
)

type acquireCmd struct {
	Bucket []string      `sep:"none" placeholder:"NAME=LIMIT/WINDOW[*TOKENS]" help:"Take tokens (1) from this bucket, which grants LIMIT of them in any WINDOW; may be repeated."`
	Guard  []string      `sep:"none" placeholder:"NAME<DURATION" help:"Only while this tracker's estimate is below the duration; may be repeated."`
	Label  string        `placeholder:"TEXT" help:"Count the request under this label in the servers' metrics."`
	Wait   time.Duration `placeholder:"DURATION" help:"While rejected, ask again and again, for at most this long; by default not."`
	JSON   bool          `help:"Print one JSON object."`
	trackerFlags
	clientFlags
}

// Help is the command's long help.
func (*acquireCmd) Help() string {
	return `All buckets and guards are decided as one: granted, with every token taken, or rejected, with none.

Exit status: 0 granted, 1 rejected, 2 no decision (nobody answered: whether to go ahead is yours to choose), 64 wrong usage, with nothing asked.

With --wait a rejected request is asked again, the less often the longer it takes, until it is granted or the time is over. No decision, and what can never be granted, ends it at once.

` + trackerHelp + `

    export WEIR_KEY="$(cat shop.key)" WEIR_DOMAIN=c-7.rl.test WEIR_RESOLVER=127.0.0.1:1053
    weir acquire --bucket checkout=100/1s
    weir acquire --bucket checkout=100/1s*5 --bucket total=1000/1m
    weir acquire --bucket checkout=100/1s --guard 'inventory<100ms' --label api --json
    weir acquire --bucket checkout=100/1s*0   # how full is it? takes nothing
    weir acquire --bucket checkout=100/1s --wait 30s && run-the-job
    weir acquire --bucket checkout=100/1s --policy 'fastest-valid unit=50ms' --timeout 1s`
}

// Run asks, prints the decision, and returns it as the exit status.
func (c *acquireCmd) Run(ctx context.Context, std *stdio) error {
	request, err := c.request()
	if err != nil {
		return usage(err)
	}
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	if c.Wait < 0 {
		return usage(fmt.Errorf("--wait: %v is negative", c.Wait))
	}
	d, err := acquire(ctx, cfg, c.Timeout, c.Wait, request)
	if err != nil {
		err = noDecision(err)
	}
	if printErr := c.print(std.out, d, err); printErr != nil {
		return errors.Join(printErr, err)
	}
	if err == nil && !d.Granted() {
		return statusError{code: exitFailure}
	}
	return err
}

// request is what the flags ask for.
func (c *acquireCmd) request() (weir.Request, error) {
	r := weir.Request{Label: c.Label}
	for _, text := range c.Bucket {
		resource, err := parseResource(text)
		if err != nil {
			return weir.Request{}, err
		}
		r.Resources = append(r.Resources, resource)
	}
	for _, text := range c.Guard {
		guard, err := parseGuard(text, &c.trackerFlags)
		if err != nil {
			return weir.Request{}, err
		}
		r.Guards = append(r.Guards, guard)
	}
	if len(r.Resources)+len(r.Guards) == 0 {
		return weir.Request{}, errors.New("nothing to ask for: give --bucket or --guard")
	}
	return r, nil
}

// acquire asks once or, with a wait, until granted or for that long; the last
// rejection is the decision then. Finding servers takes at most timeout before.
func acquire(ctx context.Context, cfg weir.Config, timeout, wait time.Duration, r weir.Request) (weir.Decision, error) {
	dialing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := weir.Dial(dialing, cfg)
	if err != nil {
		return weir.Decision{}, err
	}
	defer client.Close()
	if wait == 0 {
		return client.Acquire(ctx, r)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	d, err := client.Wait(waiting, r)
	if d.Server() != 0 && waiting.Err() != nil && ctx.Err() == nil && errors.Is(err, waiting.Err()) {
		return d, nil // rejected to the end
	}
	return d, err
}

// print shows the decision, or in JSON why there is none.
func (c *acquireCmd) print(w io.Writer, d weir.Decision, err error) error {
	switch {
	case c.JSON:
		return json.NewEncoder(w).Encode(newDecisionJSON(d, err))
	case err == nil:
		_, err := fmt.Fprintf(w, "%s\n  %v\n", redact(inWords(d)), d.Profile())
		return err
	}
	return nil // the error itself goes to standard error
}

// inWords is the decision, and how full the buckets are that were only looked at.
func inWords(d weir.Decision) string {
	s := d.String()
	for _, r := range d.Resources() {
		if r.Resource.Tokens == 0 {
			s += "; " + r.String()
		}
	}
	return s
}

// decisionJSON is a decision with durations in milliseconds. The server ID is a
// string, because many JSON readers lose digits of 64-bit numbers.
type decisionJSON struct {
	Outcome  string `json:"outcome"` // granted, rejected, no decision, not asked
	Error    string `json:"error,omitempty"`
	ServerID string `json:"server_id,omitempty"`
	*profileJSON
	Resources []resourceJSON `json:"resources,omitzero"`
	Guards    []guardJSON    `json:"guards,omitzero"`
}

// profileJSON is how the decision came about.
type profileJSON struct {
	Oldest    bool    `json:"oldest"`
	Round     int     `json:"round"`
	Final     bool    `json:"final"`
	ElapsedMs float64 `json:"elapsed_ms"`
	KeepPort  bool    `json:"keep_port"`
	Servers   int     `json:"servers"`
	Answered  int     `json:"answered"`
	Replays   int     `json:"replays"`
}

type resourceJSON struct {
	Bucket     string `json:"bucket"`
	Limit      int    `json:"limit"`
	WindowMs   int64  `json:"window_ms"`
	Tokens     int    `json:"tokens"`
	ActualRate uint32 `json:"actual_rate"`
	Deficit    uint16 `json:"deficit"`
	NoRoom     bool   `json:"no_room"`
}

type guardJSON struct {
	Tracker     string `json:"tracker"`
	ThresholdMs int64  `json:"threshold_ms"`
	LatencyMs   int64  `json:"latency_ms"`
	Passed      bool   `json:"passed"`
}

func newDecisionJSON(d weir.Decision, err error) decisionJSON {
	var status statusError
	if errors.As(err, &status) && status.code == exitUsage {
		return decisionJSON{Outcome: "not asked", Error: redact(err.Error())}
	}
	if err != nil {
		return decisionJSON{Outcome: "no decision", Error: redact(err.Error())}
	}
	p := d.Profile()
	j := decisionJSON{
		Outcome: "rejected", ServerID: p.Server.String(),
		profileJSON: &profileJSON{
			Oldest: p.Oldest, Round: p.Round, Final: p.Final, ElapsedMs: float64(p.Elapsed.Microseconds()) / 1000,
			KeepPort: p.KeepPort, Servers: p.Servers, Answered: p.Answered, Replays: p.Replays,
		},
		Resources: []resourceJSON{}, Guards: []guardJSON{},
	}
	if d.Granted() {
		j.Outcome = "granted"
	}
	for _, r := range d.Resources() {
		b := r.Resource.Bucket
		j.Resources = append(j.Resources, resourceJSON{
			Bucket: redact(b.Name()), Limit: b.Limit(), WindowMs: b.Window().Milliseconds(), Tokens: r.Resource.Tokens,
			ActualRate: r.ActualRate, Deficit: r.Deficit, NoRoom: r.NoRoom(),
		})
	}
	for _, g := range d.Guards() {
		j.Guards = append(j.Guards, guardJSON{
			Tracker: redact(g.Guard.Tracker.Name()), ThresholdMs: g.Guard.Threshold.Milliseconds(), LatencyMs: g.Latency.Milliseconds(), Passed: g.Passed,
		})
	}
	return j
}
