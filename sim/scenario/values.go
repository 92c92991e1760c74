package scenario

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// The readers of single values. n is the value, what the name of its field.

func text(n *yaml.Node, what string) (string, error) { return yamlfile.Text(n, what) }

// sentence reads a text of one line; the file may break it.
func sentence(n *yaml.Node, what string) (string, error) {
	s, err := yamlfile.Text(n, what)
	return strings.Join(strings.Fields(s), " "), err
}

func duration(n *yaml.Node, what string) (time.Duration, error) {
	d, err := step(n, what)
	if err == nil && d < 0 {
		return 0, yamlfile.At(n, "`%s` must not be below 0", what)
	}
	return d, err
}

// step is a duration that may be negative.
func step(n *yaml.Node, what string) (time.Duration, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, yamlfile.At(n, "`%s` must be a duration such as 10s, 250ms or 1.5ms, not %q", what, s)
	}
	return d, nil
}

// orNever is a duration, or never, which is negative.
func orNever(n *yaml.Node, what string) (time.Duration, error) {
	if s, _ := yamlfile.Text(n, what); s == "never" {
		return -1, nil
	}
	d, err := duration(n, what)
	if err != nil {
		return 0, yamlfile.At(n, "`%s` must be a duration such as 2s, or never", what)
	}
	return d, nil
}

// count returns a reader of whole numbers.
func count[T int | uint16 | uint32](least, most uint64) func(n *yaml.Node, what string) (T, error) {
	return func(n *yaml.Node, what string) (T, error) {
		s, err := yamlfile.Text(n, what)
		if err != nil {
			return 0, err
		}
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v < least || v > most {
			return 0, yamlfile.At(n, "`%s` must be a whole number from %d to %d, not %q", what, least, most, s)
		}
		return T(v), nil
	}
}

// countOr returns a reader of whole numbers that takes one word besides, which stands for
// another number.
func countOr(least, most uint64, word string, stands int) func(n *yaml.Node, what string) (int, error) {
	return func(n *yaml.Node, what string) (int, error) {
		s, err := yamlfile.Text(n, what)
		if err == nil && s == word {
			return stands, nil
		}
		v, err := count[int](least, most)(n, what)
		if err != nil {
			return 0, yamlfile.At(n, "`%s` must be a whole number from %d to %d, or %s", what, least, most, word)
		}
		return v, nil
	}
}

// onOff reads on or off, and what YAML takes for the same.
func onOff(n *yaml.Node, what string) (bool, error) {
	switch s, _ := yamlfile.Text(n, what); s {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, yamlfile.At(n, "`%s` must be on or off", what)
}

// percent reads a probability, "0.05%", exactly.
func percent(n *yaml.Node, what string) (sim.PerMillion, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return 0, err
	}
	number, ok := strings.CutSuffix(s, "%")
	v, fits := decimal(strings.TrimSpace(number), 4)
	if !ok || !fits || v > 1_000_000 {
		return 0, yamlfile.At(n, "`%s` must be a percentage from 0%% to 100%% with at most four decimals, such as 1%% or 0.05%%, not %q", what, s)
	}
	return sim.PerMillion(v), nil
}

// exponent reads the exponent of Zipf's law, in hundredths.
func exponent(n *yaml.Node, what string) (uint32, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return 0, err
	}
	v, fits := decimal(s, 2)
	if !fits || v > 1000 {
		return 0, yamlfile.At(n, "`%s` must be a number from 0 to 10 with at most two decimals, such as 1 or 1.05, not %q", what, s)
	}
	return uint32(v), nil
}

// decimal returns s times ten to the power of places, if s is a decimal number that has no
// more of them.
func decimal(s string, places int) (uint64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if len(fraction) > places || point && fraction == "" {
		return 0, false
	}
	digits := whole + fraction + strings.Repeat("0", places-len(fraction))
	if whole == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	return v, err == nil
}

// period reads a rate as the time from one to the next, "500/s" or "every 2ms", rounded to a
// nanosecond.
func period(n *yaml.Node, what string) (time.Duration, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return 0, err
	}
	if every, ok := strings.CutPrefix(s, "every "); ok {
		if d, err := time.ParseDuration(strings.TrimSpace(every)); err == nil && d > 0 {
			return d, nil
		}
	} else if many, window, ok := perWindow(s); ok {
		if d := (window + time.Duration(many)/2) / time.Duration(many); d > 0 {
			return d, nil
		}
	}
	return 0, yamlfile.At(n, "`%s` must be a rate such as 500/s, 30/m or \"every 2ms\", not %q", what, s)
}

// perWindow reads "100/s", "30/m" or "100/250ms". Both are above 0.
func perWindow(s string) (many uint32, window time.Duration, ok bool) {
	number, per, _ := strings.Cut(s, "/")
	v, err := strconv.ParseUint(number, 10, 32)
	if err != nil || v == 0 {
		return 0, 0, false
	}
	switch per {
	case "s":
		return uint32(v), time.Second, true
	case "m":
		return uint32(v), time.Minute, true
	case "h":
		return uint32(v), time.Hour, true
	}
	window, err = time.ParseDuration(per)
	return uint32(v), window, err == nil && window > 0 && window < math.MaxInt64/2
}

// requestPolicy reads the text form of a policy.
func requestPolicy(n *yaml.Node, what string) (policy.Policy, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return policy.Policy{}, err
	}
	p, err := policy.Parse(s)
	if err != nil {
		return policy.Policy{}, yamlfile.At(n, "`%s`: %s", what, strings.TrimPrefix(err.Error(), "policy: "))
	}
	return p, nil
}

func estimator(n *yaml.Node, what string) (limiter.Estimator, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return 0, err
	}
	e, err := limiter.ParseEstimator(s)
	if err != nil {
		return 0, yamlfile.At(n, "`%s` must be p50, min, p90, p99 or mean, not %q", what, s)
	}
	return e, nil
}

// oneOf returns a reader of one of a few words.
func oneOf[T any](words []string, values []T) func(n *yaml.Node, what string) (T, error) {
	return func(n *yaml.Node, what string) (T, error) {
		s, err := yamlfile.Text(n, what)
		for i, w := range words {
			if err == nil && s == w {
				return values[i], nil
			}
		}
		var none T
		return none, yamlfile.At(n, "`%s` must be %s", what, alternatives(words))
	}
}

func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// milliseconds is a duration of whole milliseconds, as the wire has it.
func milliseconds(n *yaml.Node, what string) (uint32, error) {
	d, err := duration(n, what)
	if err != nil {
		return 0, err
	}
	if d%time.Millisecond != 0 || d.Milliseconds() > math.MaxUint32 {
		return 0, yamlfile.At(n, "`%s` must be whole milliseconds below 1194 hours, such as 300ms, not %v", what, d)
	}
	return uint32(d.Milliseconds()), nil
}
