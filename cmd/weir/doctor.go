package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/doctor"
)

type doctorCmd struct {
	Probes int  `default:"5" placeholder:"N" help:"How many requests to time at each address (5), 1 to 100."`
	JSON   bool `help:"Print one JSON object with everything found."`
	clientFlags
}

// Help is the command's long help.
func (*doctorCmd) Help() string {
	return `Finds out why there is no decision. A server drops in silence whatever it does not authenticate or finds stale, so a wrong key, a wrong clock and a dead server all look like a timeout. Give the same key, place and policy as to weir acquire.

It asks with requests for zero tokens, which take nothing: every address by itself, and those that are silent with other stamps. Then it says what is wrong, what to do next, and what it could not tell.

Exit status: 0 all is well, 1 degraded (there are decisions, but some server, address or setting fails), 2 no decision is possible, or it was not found out, 64 wrong usage, with nothing asked.

    export WEIR_KEY="$(cat shop.key)" WEIR_DOMAIN=c-7.rl.test WEIR_RESOLVER=127.0.0.1:1053
    weir doctor
    weir doctor --policy 'fastest-valid unit=50ms' --probes 50
    weir doctor --key-file shop.key --server 512450938123@192.0.2.1:29292 --json`
}

// Run examines, prints the report, and returns its verdict as the exit status.
func (c *doctorCmd) Run(ctx context.Context, std *stdio) error {
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	if c.Probes < 1 || c.Probes > doctor.MaxProbes {
		return usage(errors.New("--probes: give 1 to 100"))
	}
	report, err := doctor.Run(ctx, doctor.Config{Client: cfg, Lookup: c.Timeout, Probes: c.Probes, Progress: std.err})
	if err != nil {
		return unexamined(err)
	}
	if c.JSON {
		err = json.NewEncoder(std.out).Encode(report)
	} else {
		err = doctor.Write(std.out, report)
	}
	switch {
	case err != nil:
		return err
	case report.Verdict == doctor.NoDecision:
		return statusError{code: exitNoDecision}
	case report.Verdict == doctor.Degraded:
		return statusError{code: exitFailure}
	}
	return nil
}

// unexamined gives an error, after which nothing was found out, its exit status: a
// configuration that cannot be used is the user's to mend, and the rest is not
// "degraded".
func unexamined(err error) error {
	var config *weir.ConfigError
	if errors.As(err, &config) {
		return usage(err)
	}
	return statusError{code: exitNoDecision, err: err}
}
