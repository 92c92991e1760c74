package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
)

// keyCmd is the group of commands about API keys.
type keyCmd struct {
	New     keyNewCmd     `cmd:"" help:"Issue an API key."`
	Inspect keyInspectCmd `cmd:"" help:"Show everything about an API key but its secret."`
}

// quotaUnit is how a quota's number is read and written.
type quotaUnit int

const (
	count  quotaUnit = iota
	period           // milliseconds
	window           // milliseconds, of which the largest number is unlimited
)

const unlimited = "unlimited"

// quotas are the quotas' names on the command line, in the order of a key.
var quotas = [...]struct {
	name  string
	unit  quotaUnit
	field func(*apikey.Quotas) *uint32
}{
	{"rate-buckets", count, func(q *apikey.Quotas) *uint32 { return &q.RateBuckets }},
	{"latency-services", count, func(q *apikey.Quotas) *uint32 { return &q.LatencyServices }},
	{"metrics-labels", count, func(q *apikey.Quotas) *uint32 { return &q.MetricsLabels }},
	{"latency-buffer-size", count, func(q *apikey.Quotas) *uint32 { return &q.LatencyBufferSize }},
	{"dedup-ttl", period, func(q *apikey.Quotas) *uint32 { return &q.DedupTTL }},
	{"rate-window", window, func(q *apikey.Quotas) *uint32 { return &q.RateWindow }},
}

// setQuotas changes q by settings of the form name=value.
func setQuotas(q *apikey.Quotas, settings []string) error {
	seen := make(map[string]bool, len(settings))
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("quota %q is not of the form name=value", setting)
		}
		if seen[name] {
			return fmt.Errorf("quota %s is set twice", name)
		}
		seen[name] = true
		if err := setQuota(q, name, value); err != nil {
			return err
		}
	}
	return nil
}

func setQuota(q *apikey.Quotas, name, value string) error {
	var names []string
	for _, quota := range quotas {
		names = append(names, quota.name)
		if quota.name != name {
			continue
		}
		v, err := parseQuota(value, quota.unit)
		if err != nil {
			return fmt.Errorf("quota %s: %w", name, err)
		}
		*quota.field(q) = v
		return nil
	}
	return fmt.Errorf("%q is no quota; there are %s", name, strings.Join(names, ", "))
}

func parseQuota(value string, unit quotaUnit) (uint32, error) {
	if value == unlimited && unit == window {
		return math.MaxUint32, nil
	}
	if v, err := strconv.ParseUint(value, 10, 32); err == nil {
		return uint32(v), nil
	}
	if unit == count {
		return 0, fmt.Errorf("%q is no number from 0 to %d", value, uint32(math.MaxUint32))
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d%time.Millisecond != 0 || d/time.Millisecond > math.MaxUint32 {
		return 0, fmt.Errorf("%q is neither a duration of whole milliseconds, such as 300ms, nor a number of them from 0 to %d", value, uint32(math.MaxUint32))
	}
	return uint32(d / time.Millisecond), nil
}

// formatQuota writes a quota as a user would.
func formatQuota(v uint32, unit quotaUnit) string {
	switch {
	case unit == window && v == math.MaxUint32:
		return unlimited
	case unit != count:
		return (time.Duration(v) * time.Millisecond).String()
	}
	return strconv.FormatUint(uint64(v), 10)
}
