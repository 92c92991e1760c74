package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/sim"
)

// Dist reads a distribution as scenarios have it, by [sim.ParseDist] or from a file, as in
// "file rtt.hlog whole". open returns the content of a file by its name. The error names the file and
// its line.
func Dist(text string, open func(name string) ([]byte, error)) (sim.Dist, error) {
	name, words, ok := fileName(text)
	if !ok {
		return sim.ParseDist(text)
	}
	samples, err := readSamples(name, words, false, open)
	if err != nil {
		return sim.Dist{}, err
	}
	d := distOf(samples)
	if err := d.Validate(); err != nil {
		return sim.Dist{}, fmt.Errorf("file %s: %s", name, strings.TrimPrefix(err.Error(), "sim: "))
	}
	return d, nil
}

// distOf is the distribution of samples.
func distOf(samples []sample) sim.Dist {
	values, counts := make([]time.Duration, len(samples)), make([]uint64, len(samples))
	for i, s := range samples {
		values[i], counts[i] = s.value, s.count
	}
	return sim.Empirical(values, counts)
}
