package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

// sample is a duration that was seen Count times.
type sample struct {
	value time.Duration
	count uint64
}

// formats are the data files that can be read, by their names' ending.
var formats = []struct {
	ending string
	trace  bool // has values in order, so that it may be a trace
	words  bool // takes words behind its name
	read   func(data []byte, words []string) ([]sample, error)
}{
	{".txt", true, false, func(data []byte, _ []string) ([]sample, error) { return readLines(data) }},
	{".hlog", false, true, readLog},
}

// maxTrace is the number of requests in a recorded trace.
const maxTrace = 1 << 22

// dist reads a distribution of durations.
func (d *decoder) dist(n *yaml.Node, what string) (sim.Dist, error) {
	s, err := yamlfile.Text(n, what)
	if err != nil {
		return sim.Dist{}, err
	}
	if name, words, ok := fileName(s); ok {
		samples, err := d.samples(n, what, name, words, false)
		if err != nil {
			return sim.Dist{}, err
		}
		return empirical(n, what, name, samples)
	}
	v, err := sim.ParseDist(s)
	if err != nil {
		return sim.Dist{}, yamlfile.At(n, "`%s`: %s", what, strings.TrimPrefix(err.Error(), "sim: "))
	}
	return v, nil
}

// trace reads the instants of a recorded trace.
func (d *decoder) trace(n *yaml.Node) ([]time.Duration, error) {
	s, err := yamlfile.Text(n, "trace")
	if err != nil {
		return nil, err
	}
	name, words, ok := fileName(s)
	if !ok {
		return nil, yamlfile.At(n, "`trace` must name a file, as in `trace: file arrivals.txt`, not %q", s)
	}
	samples, err := d.samples(n, "trace", name, words, true)
	if err != nil {
		return nil, err
	}
	many := uint64(0)
	for _, s := range samples {
		if many += s.count; many > maxTrace {
			return nil, yamlfile.At(n, "`trace`: file %s has more than %d requests", name, maxTrace)
		}
	}
	times := make([]time.Duration, 0, many)
	for _, s := range samples {
		for range s.count {
			times = append(times, s.value)
		}
	}
	return times, nil
}

// fileName reads "file rtt.txt" and, where the format takes words, "file rtt.hlog whole".
func fileName(s string) (name string, words []string, ok bool) {
	name, ok = strings.CutPrefix(s, "file ")
	name = strings.TrimSpace(name)
	for _, f := range formats {
		if before, after, found := strings.Cut(name, f.ending+" "); found && f.words {
			return before + f.ending, strings.Fields(after), ok
		}
	}
	return name, nil, ok
}

// samples reads a data file beside the scenario, which is to be a trace or a distribution.
func (d *decoder) samples(n *yaml.Node, what, name string, words []string, trace bool) ([]sample, error) {
	if d.open == nil {
		return nil, yamlfile.At(n, "`%s` names a file, and there are none beside this scenario", what)
	}
	samples, err := readSamples(name, words, trace, d.open)
	if err != nil {
		return nil, yamlfile.At(n, "`%s`: %v", what, err)
	}
	return samples, nil
}

// readSamples reads a data file, which is to be a trace or a distribution.
func readSamples(name string, words []string, trace bool, open func(name string) ([]byte, error)) ([]sample, error) {
	var endings []string
	for _, f := range formats {
		if trace && !f.trace {
			continue
		}
		endings = append(endings, f.ending)
		if path.Ext(name) != f.ending {
			continue
		}
		data, err := open(name)
		if err != nil {
			return nil, fmt.Errorf("file %s cannot be read: %w", name, withoutPath(err))
		}
		samples, err := f.read(data, words)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", name, err)
		}
		return samples, nil
	}
	return nil, fmt.Errorf("the name of a file must end in %s, not %q", alternatives(endings), name)
}

// readLines reads one value a line: a duration and, if it stands for several, their number.
func readLines(data []byte) ([]sample, error) {
	var samples []sample
	lines := bufio.NewScanner(bytes.NewReader(data))
	for at := 1; lines.Scan(); at++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s := sample{count: 1}
		var err error
		if s.value, err = time.ParseDuration(words[0]); err != nil || s.value < 0 {
			return nil, fmt.Errorf("line %d: %q must be a duration such as 1.5ms, not below 0", at, words[0])
		}
		if len(words) > 1 {
			s.count, err = strconv.ParseUint(words[1], 10, 32)
		}
		if err != nil || s.count == 0 || len(words) > 2 {
			return nil, fmt.Errorf("line %d must be a duration and, if there are several, their number, as in \"1.5ms 20\"", at)
		}
		samples = append(samples, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return nil, errors.New("it has no values; write one a line, as in \"1.5ms 20\"")
	}
	return samples, nil
}

// empirical is the distribution of samples.
func empirical(n *yaml.Node, what, name string, samples []sample) (sim.Dist, error) {
	d := distOf(samples)
	if err := d.Validate(); err != nil {
		return sim.Dist{}, yamlfile.At(n, "`%s`: file %s: %s", what, name, strings.TrimPrefix(err.Error(), "sim: "))
	}
	return d, nil
}
