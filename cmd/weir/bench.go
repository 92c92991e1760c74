package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/load"
)

type benchCmd struct {
	InFlight *int          `placeholder:"N" help:"Closed loop: how many requests are in flight at any time (64)."`
	Rate     *float64      `placeholder:"N" help:"Open loop instead: how many requests a second leave, at random intervals, whether answers come or not."`
	Flows    *int          `placeholder:"N" help:"How many sockets they leave from (16)."`
	For      time.Duration `default:"10s" placeholder:"DURATION" help:"How long to measure (${default})."`
	WarmUp   time.Duration `default:"1s" placeholder:"DURATION" help:"How long to ask before that, without counting (${default})."`

	AnswerTimeout time.Duration `default:"1s" placeholder:"DURATION" help:"An answer that takes longer is lost (${default})."`

	Replays bool `help:"Open loop: replay what has no answer as a client with this --policy does, and give it up at the policy's horizon, in place of --answer-timeout."`

	Buckets   int           `default:"1" placeholder:"N" help:"How many buckets there are (${default})."`
	Zipf      float64       `placeholder:"S" help:"Ask for the n-th of them as often as n^-S (0: for all alike)."`
	Resources int           `default:"1" placeholder:"N" help:"Buckets that each request asks for (${default})."`
	Tokens    uint16        `default:"1" placeholder:"N" help:"Tokens of each (${default})."`
	Limit     uint32        `default:"1000000000" placeholder:"N" help:"Tokens that a bucket has in a window (${default}, so that all is granted)."`
	Window    time.Duration `default:"1s" placeholder:"DURATION" help:"A bucket's window (${default})."`
	Guards    int           `placeholder:"N" help:"Latency guards that each request carries (0)."`
	Reports   float64       `placeholder:"N" help:"Latency reports for each request (0); 0.1 is one for ten."`
	Seed      uint64        `default:"1" placeholder:"N" help:"Seed of what is drawn at random (${default})."`

	TenantKeyFile []string `type:"path" sep:"none" placeholder:"FILE" help:"Let the tenant of this key ask, too; may be repeated. Sockets are shared out among all."`
	Bursts        string   `enum:"on,off" default:"on" placeholder:"MODE" help:"Let requests of one socket leave, and answers come, many in one buffer of the system's, where it can do that: on (the default) or off."`
	NoSteer       bool     `help:"Do not change ports when a server asks for it."`
	JSON          bool     `help:"Print one JSON object instead of the table."`
	clientFlags
}

// Help is the command's long help.
func (*benchCmd) Help() string {
	return `Puts load on the servers, from this machine, and judges every answer. This takes tokens, and processors that others may need: use a tenant made for it. Its buckets and trackers have names of their own.

A closed loop, the default, keeps --in-flight requests in flight and shows the most that a server does. An open loop, with --rate, shows what clients would see at that rate: a latency counts from the instant at which its request was due, so that a stall is seen by all that were to be sent meanwhile. A request without an answer counts as one that took --answer-timeout.

At the end it says what was the limit: the client, the server, this machine, or how few were in flight. Ctrl-C ends it, and prints what there is.

Exit status: 0 measured, 1 answers were wrong, 2 nobody answered in time or no server is known, 64 wrong usage, with nothing asked.

    export WEIR_KEY="$(cat load.key)"
    weir bench --server 512450938123@127.0.0.1:29292
    weir bench --server 512450938123@127.0.0.1:29292 --in-flight 256 --buckets 50000 --zipf 1
    weir bench --server 512450938123@127.0.0.1:29292 --rate 20000 --resources 3 --guards 1 --reports 0.1 --json`
}

// Run measures and prints what came of it.
func (c *benchCmd) Run(ctx context.Context, std *stdio) error {
	cfg, err := c.load(ctx, std)
	if err != nil {
		return err
	}
	teller := newProgressTeller(std, isTerminal(std.err), time.Now())
	teller.done, teller.doing = "measured", "measuring"
	cfg.Progress = func(p load.Progress) { teller.tell(time.Now(), p.Passed, p.All) }
	result, err := load.Run(ctx, cfg)
	teller.finish()
	if err != nil {
		return asFlag(err)
	}
	if c.JSON {
		err = json.NewEncoder(std.out).Encode(result)
	} else {
		err = load.WriteTable(std.out, result)
	}
	switch {
	case err != nil:
		return err
	case result.Wrong > 0:
		return fmt.Errorf("%d answers were wrong", result.Wrong)
	case result.Granted+result.Denied == 0 && result.Interrupted:
		return statusError{code: exitNoDecision, err: errors.New("interrupted before an answer counted")}
	case result.Sent+result.Skipped == 0:
		return statusError{code: exitNoDecision, err: errors.New("no request was due in the time that counts: give --for more, or --rate")}
	case result.Granted+result.Denied == 0 && result.Late > 0:
		patience := "--answer-timeout more"
		if c.Replays {
			patience = "--policy a longer horizon"
		}
		return statusError{code: exitNoDecision, err: fmt.Errorf("no answer was in time, and %d came too late: ask for less, or give %s", result.Late, patience)}
	case result.Granted+result.Denied == 0:
		return statusError{code: exitNoDecision, err: errors.New("nobody answered; weir doctor, with the same key and flags, finds out why")}
	}
	return nil
}

// load is what the flags make of a load. All that is wrong with them is known before anything is asked.
func (c *benchCmd) load(ctx context.Context, std *stdio) (load.Config, error) {
	client, err := c.config(std)
	if err != nil {
		return load.Config{}, err
	}
	if err := c.check(); err != nil {
		return load.Config{}, usage(err)
	}
	cfg := load.Config{
		Keys: []apikey.Key{client.Key}, Flows: given(c.Flows), InFlight: given(c.InFlight), Rate: given(c.Rate),
		For: c.For, WarmUp: c.WarmUp, Timeout: c.AnswerTimeout, Seed: c.Seed, NoBursts: c.Bursts == "off", Steer: !c.NoSteer,
		Work: load.Work{
			Layout: client.Layout, Buckets: c.Buckets, Zipf: c.Zipf, Resources: c.Resources, Guards: c.Guards, Reports: c.Reports,
			Tokens: c.Tokens, Limit: c.Limit, Window: uint32(c.Window.Milliseconds()),
		},
	}
	if c.Replays {
		if cfg.Replays, err = client.Policy.Compile(); err != nil {
			return cfg, usage(fmt.Errorf("--policy: %w", err))
		}
	}
	for _, name := range c.TenantKeyFile {
		source := keySource{KeyFile: name}
		key, err := source.load(std, c.AllowLegacyKey)
		if err != nil {
			return cfg, usage(fmt.Errorf("--tenant-key-file: %w", err))
		}
		cfg.Keys = append(cfg.Keys, key)
	}
	cfg.Targets = []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), 0)} // to be found when all else is right
	if err := load.Check(cfg); err != nil {
		return cfg, usage(asFlag(err))
	}
	servers, err := findServers(ctx, client, c.Timeout)
	if err != nil {
		return cfg, noDecision(err)
	}
	cfg.Targets = nil
	for _, s := range servers {
		for _, addr := range s.Addrs {
			cfg.Targets, cfg.Servers = append(cfg.Targets, addr), append(cfg.Servers, s.ID)
		}
	}
	if err := load.Check(cfg); err != nil { // such as fewer sockets than servers
		return cfg, usage(asFlag(err))
	}
	return cfg, nil
}

// check says what is wrong with flags for which a load would take a default.
func (c *benchCmd) check() error {
	const longest = (1<<32 - 1) * time.Millisecond
	for _, f := range []struct {
		flag string
		none bool
	}{
		{"in-flight", c.InFlight != nil && *c.InFlight == 0},
		{"rate", c.Rate != nil && *c.Rate == 0},
		{"flows", c.Flows != nil && *c.Flows == 0},
		{"for", c.For == 0},
		{"answer-timeout", c.AnswerTimeout == 0},
		{"buckets", c.Buckets == 0},
		{"resources", c.Resources == 0},
		{"tokens", c.Tokens == 0},
		{"limit", c.Limit == 0},
	} {
		if f.none {
			return fmt.Errorf("--%s: give more than 0", f.flag)
		}
	}
	switch {
	case c.Window < time.Millisecond || c.Window%time.Millisecond != 0 || c.Window > longest:
		return fmt.Errorf("--window: %v is not a whole number of milliseconds from 1 to %d", c.Window, longest.Milliseconds())
	case c.InFlight != nil && c.Rate != nil:
		return errors.New("--in-flight is of a closed loop and --rate of an open one: give one of them")
	}
	return nil
}

// given is what a flag was set to, or 0 if it was not.
func given[T int | float64](flag *T) (v T) {
	if flag != nil {
		v = *flag
	}
	return v
}

// asFlag names the flag of a field that is wrong.
func asFlag(err error) error {
	var wrong *load.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	names := map[string]string{"InFlight": "in-flight", "WarmUp": "warm-up", "Timeout": "answer-timeout", "Keys": "key-file", "Targets": "server"}
	return fmt.Errorf("--%s: %s", cmp.Or(names[wrong.Field], strings.ToLower(wrong.Field)), wrong.Problem)
}
