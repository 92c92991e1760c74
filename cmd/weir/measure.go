package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/roundtrip"
)

type measureCmd struct {
	For           time.Duration `default:"30s" placeholder:"DURATION" help:"How long to measure (${default})."`
	Rate          int           `default:"50" placeholder:"N" help:"Questions a second to each address (${default}), 1 to 1000."`
	WarmUp        time.Duration `default:"1s" placeholder:"DURATION" help:"How long to ask before that, without counting (${default})."`
	AnswerTimeout time.Duration `default:"1s" placeholder:"DURATION" help:"An answer that takes longer is lost (${default})."`
	Out           string        `short:"o" type:"path" placeholder:"FILE" help:"Write the round trips into this new file, as an HDR histogram log; .hlog is the usual ending."`
	Force         bool          `help:"Replace the file if there is one."`
	JSON          bool          `help:"Print one JSON object instead of the table."`
	clientFlags
}

// Help is the command's long help.
func (*measureCmd) Help() string {
	return `Measures round trips from this machine to the servers. Every address of every server is asked by itself, and only for zero tokens, which takes nothing and creates nothing. Questions leave at an even rate, whether those before them were answered or not, so that a pause is seen by as many of them as it lasted. No policy plays a part.

Ctrl-C ends it, and prints and writes what there is. The file is for weir sim (docs/scenarios.md) and any tool that reads HDR histogram logs; its values are nanoseconds, its tags the servers' IDs.

Exit status: 0 measured, 1 the file could not be written, 2 nobody answered or no server is known, 64 wrong usage, with nothing asked.

    export WEIR_KEY="$(cat shop.key)" WEIR_DOMAIN=c-7.rl.test WEIR_RESOLVER=127.0.0.1:1053
    weir measure
    weir measure --for 10m --rate 20 -o rtt.hlog
    weir measure --server 512450938123@192.0.2.1:29292 --for 5s --json`
}

// Run measures, prints what came of it, and writes the file.
func (c *measureCmd) Run(ctx context.Context, std *stdio) error {
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return usage(err)
	}
	// Whatever keeps the file from being written is better known now than later.
	file, err := newOutput(c.Out, c.Force)
	if err != nil {
		return err
	}
	defer file.discard()
	servers, err := findServers(ctx, cfg, c.Timeout)
	if err != nil {
		return noDecision(err)
	}
	result, err := c.measure(ctx, std, cfg, servers)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(std.out).Encode(result)
	} else {
		err = roundtrip.WriteTable(std.out, result)
	}
	if result.Answered() == 0 {
		return statusError{code: exitNoDecision, err: errors.Join(err, unanswered(result))}
	}
	if c.Out != "" {
		err = errors.Join(err, roundtrip.WriteLog(file, result), file.keep())
	}
	return err
}

// check says what is wrong with the flags.
func (c *measureCmd) check() error {
	switch {
	case c.For <= 0 || c.For > roundtrip.MaxFor:
		return fmt.Errorf("--for: give more than 0, and at most %v", roundtrip.MaxFor)
	case c.Rate < 1 || c.Rate > roundtrip.MaxRate:
		return fmt.Errorf("--rate: give 1 to %d", roundtrip.MaxRate)
	case c.WarmUp < 0 || c.WarmUp > roundtrip.MaxWarmUp:
		return fmt.Errorf("--warm-up: give 0s to %v", roundtrip.MaxWarmUp)
	case c.AnswerTimeout < time.Millisecond || c.AnswerTimeout > roundtrip.MaxTimeout:
		return fmt.Errorf("--answer-timeout: give 1ms to %v", roundtrip.MaxTimeout)
	case c.Force && c.Out == "":
		return errors.New("--force replaces the file of --out, and there is none")
	}
	return nil
}

// findServers returns the servers that a client would ask.
func findServers(ctx context.Context, cfg weir.Config, timeout time.Duration) ([]discovery.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := weir.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Servers(), nil
}

// measure measures, and tells on standard error how far it is, if it takes long.
func (c *measureCmd) measure(ctx context.Context, std *stdio, cfg weir.Config, servers []discovery.Server) (*roundtrip.Result, error) {
	teller := newProgressTeller(std, isTerminal(std.err), time.Now())
	teller.done, teller.doing = "measured", "measuring"
	defer teller.finish()
	return roundtrip.Run(ctx, roundtrip.Config{
		Key: cfg.Key, Servers: servers, Layout: cfg.Layout,
		For: c.For, WarmUp: c.WarmUp, Rate: c.Rate, Timeout: c.AnswerTimeout,
		Progress: func(passed, all time.Duration) { teller.tell(time.Now(), passed, all) },
	})
}

// unanswered says why there is nothing to write.
func unanswered(r *roundtrip.Result) error {
	if r.Interrupted {
		return errors.New("interrupted before anybody answered; nothing is written")
	}
	return errors.New("nobody answered, so nothing is written; weir doctor, with the same key and flags, finds out why")
}
