package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// trackerFlags define the trackers that a guard asks and a report feeds. A guard
// and a report meet only where all of them are equal, so that every command has
// the same flags with the same defaults.
type trackerFlags struct {
	TTL        time.Duration `name:"tracker-ttl" default:"10s" placeholder:"DURATION" help:"How long an observation counts (10s)."`
	MaxSamples int           `name:"tracker-max-samples" default:"32" placeholder:"N" help:"How many of the latest observations count (32)."`
	MinSamples int           `name:"tracker-min-samples" default:"1" placeholder:"N" help:"With fewer observations than this there is no estimate, and guards pass (1)."`
	BufferSize int           `name:"tracker-buffer-size" default:"32" placeholder:"N" help:"Buffer size of a tracker in layout 1, at most the key's quota; layout 2 has none (32)."`
}

// trackerHelp is part of the long help of each command with tracker flags.
const trackerHelp = `A tracker is named by its name together with the four tracker settings: weir acquire and weir report mean the same tracker only if they agree on all of them. They have the same defaults: 10s, 32, 1, 32.`

func (f *trackerFlags) tracker(name string) weir.LatencyTracker {
	return weir.Tracker(name, weir.TrackerOptions{TTL: f.TTL, MaxSamples: f.MaxSamples, MinSamples: f.MinSamples, BufferSize: f.BufferSize})
}

// parseResource reads NAME=LIMIT/WINDOW or NAME=LIMIT/WINDOW*TOKENS. A name may
// hold any of these signs: the last "=" counts.
func parseResource(text string) (weir.Resource, error) {
	fail := func(reason string, args ...any) (weir.Resource, error) {
		return weir.Resource{}, fmt.Errorf("bucket %q: %s; write NAME=LIMIT/WINDOW or NAME=LIMIT/WINDOW*TOKENS, such as checkout=100/1s*5", text, fmt.Sprintf(reason, args...))
	}
	name, rate, err := cutName(text, "=")
	if err != nil {
		return fail("%v", err)
	}
	limit, rest, ok := strings.Cut(rate, "/")
	if !ok {
		return fail("there is no window")
	}
	window, count, counted := strings.Cut(rest, "*")
	n, err := strconv.ParseUint(limit, 10, 32)
	if err != nil {
		return fail("the limit %q is no number from 0 to 4294967295", limit)
	}
	d, err := time.ParseDuration(window)
	if err != nil {
		return fail("the window %q is no duration", window)
	}
	tokens := uint64(1)
	if counted {
		if tokens, err = strconv.ParseUint(count, 10, 16); err != nil {
			return fail("%q tokens is no number from 0 to 65535", count)
		}
	}
	return weir.Bucket(name, int(n), d).Take(int(tokens)), nil
}

// parseGuard reads NAME<DURATION.
func parseGuard(text string, trackers *trackerFlags) (weir.Guard, error) {
	name, threshold, err := cutName(text, "<")
	if err == nil {
		var d time.Duration
		if d, err = time.ParseDuration(threshold); err == nil {
			return trackers.tracker(name).Below(d), nil
		}
		err = fmt.Errorf("%q is no duration", threshold)
	}
	return weir.Guard{}, fmt.Errorf("guard %q: %w; write NAME<DURATION in quotes, such as 'inventory<100ms'", text, err)
}

// parseObservation reads NAME=DURATION.
func parseObservation(text string, trackers *trackerFlags) (weir.Observation, error) {
	name, latency, err := cutName(text, "=")
	if err == nil {
		var d time.Duration
		d, err = time.ParseDuration(latency)
		switch {
		case err != nil:
			err = fmt.Errorf("%q is no duration", latency)
		case d < 0:
			err = fmt.Errorf("%q is below 0", latency)
		default:
			return trackers.tracker(name).Took(d), nil
		}
	}
	return weir.Observation{}, fmt.Errorf("observation %q: %w; write NAME=DURATION, such as inventory=18ms", text, err)
}

// cutName splits a name from what follows the last sign.
func cutName(text, sign string) (name, rest string, err error) {
	i := strings.LastIndex(text, sign)
	if i < 0 {
		return "", "", fmt.Errorf("there is no %q", sign)
	}
	if i == 0 {
		return "", "", errors.New("the name is empty")
	}
	return text[:i], text[i+len(sign):], nil
}
