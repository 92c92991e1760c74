package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// forms are the words that ParseDist knows, and what follows each.
var forms = [...]struct {
	word, params string
	kind         distKind
}{
	{"uniform", "the shortest and the longest", distUniform},
	{"exponential", "the mean", distExponential},
	{"lognormal", "the median and the 99th percentile", distLognormal},
}

// ParseDist reads the text form of a distribution: a duration such as "5ms", which is always that;
// "uniform 1ms 3ms"; "exponential 2ms" (the mean); or "lognormal 1ms 9ms" (the median and the 99th
// percentile). The distribution that is returned passes [Dist.Validate].
func ParseDist(text string) (Dist, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Dist{}, errors.New("sim: a distribution is a duration such as 5ms, or uniform, exponential or lognormal with durations")
	}
	kind, params := distConstant, "one duration"
	for _, f := range forms {
		if f.word == words[0] {
			kind, params, words = f.kind, f.params, words[1:]
			break
		}
	}
	want := 2
	if kind == distConstant || kind == distExponential {
		want = 1
	}
	if len(words) != want {
		return Dist{}, fmt.Errorf("sim: distribution %q: it takes %s", text, params)
	}
	var at [2]time.Duration
	for i, word := range words {
		var err error
		if at[i], err = time.ParseDuration(word); err != nil {
			return Dist{}, fmt.Errorf("sim: distribution %q: %q is no duration such as 5ms", text, word)
		}
	}
	d := Dist{kind: kind, a: at[0], b: at[1]}
	if kind == distLognormal {
		d = Lognormal(at[0], at[1])
	}
	return d, d.Validate()
}

// String returns the text that [ParseDist] reads, or, for values that were seen, how many there
// are.
func (d Dist) String() string {
	switch d.kind {
	case distUniform:
		return fmt.Sprintf("uniform %v %v", d.a, d.b)
	case distExponential:
		return fmt.Sprintf("exponential %v", d.a)
	case distLognormal:
		return fmt.Sprintf("lognormal %v %v", d.a, d.b)
	case distEmpirical:
		return fmt.Sprintf("empirical of %d values", len(d.data.values))
	}
	return d.a.String()
}

// Validate reports why the distribution cannot be drawn from.
func (d Dist) Validate() error {
	switch {
	case d.kind == distEmpirical:
		return d.data.validate()
	case d.a < 0 || d.b < 0 || d.a > MaxDuration || d.b > MaxDuration:
		return fmt.Errorf("sim: distribution %v: a duration is from 0 to %v", d, MaxDuration)
	case d.kind == distUniform && d.a > d.b:
		return fmt.Errorf("sim: distribution %v: the shortest comes first", d)
	case d.kind == distExponential && d.a == 0, d.kind == distLognormal && d.a == 0:
		return fmt.Errorf("sim: distribution %v: a duration above 0 is needed", d)
	case d.kind == distLognormal && d.a > d.b:
		return fmt.Errorf("sim: distribution %v: the median is above the 99th percentile", d)
	}
	return nil
}

func (e *empirical) validate() error {
	if len(e.values) == 0 {
		return errors.New("sim: empirical distribution: it needs values, and as many counts as values, if any")
	}
	if e.values[0] < 0 || e.values[len(e.values)-1] > MaxDuration {
		return fmt.Errorf("sim: empirical distribution: a value is not from 0 to %v", MaxDuration)
	}
	for i, last := range e.until[1:] {
		if last < e.until[i] {
			return errors.New("sim: empirical distribution: the counts add up to more than 2^64")
		}
	}
	return nil
}
