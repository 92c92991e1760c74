package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
)

type reportCmd struct {
	Observation []string `arg:"" sep:"none" name:"NAME=DURATION" help:"What took how long, such as inventory=18ms. Counted in whole milliseconds, rounded down."`
	trackerFlags
	clientFlags
}

// Help is the command's long help.
func (*reportCmd) Help() string {
	return `A report goes once to every server, and nothing answers: exit status 0 says that it was sent, not that it arrived. It is 1 if nothing could be sent, 2 if no server is known, 64 for wrong usage.

` + trackerHelp + `

    export WEIR_KEY="$(cat shop.key)" WEIR_DOMAIN=c-7.rl.test WEIR_RESOLVER=127.0.0.1:1053
    weir report inventory=18ms
    weir report inventory=18ms payment=240ms
    weir report inventory=18ms --tracker-ttl 1m --tracker-min-samples 5`
}

// Run reports and says in words what was sent to whom.
func (c *reportCmd) Run(ctx context.Context, std *stdio) error {
	var observations []weir.Observation
	for _, text := range c.Observation {
		o, err := parseObservation(text, &c.trackerFlags)
		if err != nil {
			return usage(err)
		}
		observations = append(observations, o)
	}
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	client, err := weir.Dial(dialing, cfg)
	if err != nil {
		return noDecision(err)
	}
	defer client.Close()
	if err := client.Report(observations...); err != nil {
		return noDecision(err)
	}
	text, err := reported(client.Stats().Stats, len(client.Servers()))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, text)
	return err
}

// reported says what came of a report.
func reported(s core.Stats, servers int) (string, error) {
	sent, failed := s.Sent[core.SendReport], s.SendFailures[core.SendReport]
	switch {
	case s.Observations == 0 && s.ObservationsLeftOut > 0:
		return "", usage(errors.New("nothing was reported: --tracker-buffer-size is above the key's quota for latency buffers"))
	case sent <= failed:
		return "", fmt.Errorf("none of %s could be sent", plural(sent, "datagram"))
	}
	text := fmt.Sprintf("reported %s to %s in %s", plural(s.Observations, "observation"), plural(uint64(servers), "server"), plural(sent-failed, "datagram"))
	if failed > 0 {
		text += fmt.Sprintf("; %d more could not be sent", failed)
	}
	if s.ObservationsLeftOut > 0 {
		text += fmt.Sprintf("; %d left out, over the key's quota for latency buffers", s.ObservationsLeftOut)
	}
	return text, nil
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}
