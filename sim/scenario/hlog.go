package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// finest is how many significant digits the histograms of a log may have. What has more
// takes a lot of memory, however few values there are.
const finest = 4

// logWords are what stands behind the name of a log.
type logWords struct {
	tag   string // "" for all
	whole bool   // values are taken as they are, and not halved
}

// readLogWords reads "server 512450938123 whole".
func readLogWords(words []string) (w logWords, err error) {
	for len(words) > 0 {
		switch {
		case words[0] == "whole" && !w.whole:
			w.whole, words = true, words[1:]
		case words[0] == "server" && len(words) > 1 && w.tag == "":
			w.tag, words = words[1], words[2:]
		default:
			return w, fmt.Errorf("behind the name there may be `server` with an ID, and `whole`, as in \"file rtt.hlog server 512450938123 whole\", not %q",
				strings.Join(words, " "))
		}
	}
	return w, nil
}

// has reports whether an interval with this tag is among those to read: of a server with
// several addresses the tag has the address too.
func (w *logWords) has(tag string) bool {
	return w.tag == "" || tag == w.tag || strings.HasPrefix(tag, w.tag+"@")
}

// readLog reads an HDR histogram log of round trips in nanoseconds, as weir measure writes
// it, and halves them: a delay is of one way. A value is the middle of those that its
// histogram does not tell apart.
func readLog(data []byte, words []string) ([]sample, error) {
	w, err := readLogWords(words)
	if err != nil {
		return nil, err
	}
	counts := make(map[time.Duration]uint64)
	tags := make(map[string]bool)
	at := 0
	for line := range bytes.Lines(data) {
		at++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' || text[0] == '"' {
			continue
		}
		tag, h, err := readInterval(text, w.has)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		tags[tag] = true
		if h == nil {
			continue
		}
		for _, bar := range h.Distribution() {
			value := time.Duration(bar.From + max(0, bar.To-bar.From)/2)
			if !w.whole {
				value /= 2
			}
			if bar.Count > 0 && counts[value] > math.MaxUint64-uint64(bar.Count) {
				return nil, fmt.Errorf("line %d: the counts add up to more than 2^64", at)
			}
			if bar.Count > 0 {
				counts[value] += uint64(bar.Count)
			}
		}
	}
	if len(counts) == 0 {
		return nil, nothingIn(tags, w.tag)
	}
	samples := make([]sample, 0, len(counts))
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		samples = append(samples, sample{value, counts[value]})
	}
	return samples, nil
}

// readInterval reads a line "Tag=T,start,length,max,histogram". The histogram is nil if its
// tag is not wanted.
func readInterval(line string, wanted func(tag string) bool) (tag string, h *hdr.Histogram, err error) {
	fields := strings.Split(line, ",")
	if rest, ok := strings.CutPrefix(fields[0], "Tag="); ok {
		tag, fields = rest, fields[1:]
	}
	if len(fields) != 4 {
		return "", nil, errors.New("it is no interval of an HDR histogram log; write one with weir measure")
	}
	if !wanted(tag) {
		return tag, nil, nil
	}
	packed, err := hdr.DecodePacked([]byte(fields[3]))
	if err != nil {
		return "", nil, fmt.Errorf("the histogram cannot be read: %w", err)
	}
	if digits := packed.SignificantFigures(); digits > finest {
		return "", nil, fmt.Errorf("the histogram has %d significant digits; record with %d at most", digits, finest)
	}
	if h, err = hdr.Decode([]byte(fields[3])); err != nil {
		return "", nil, fmt.Errorf("the histogram cannot be read: %w", err)
	}
	return tag, h, nil
}

// nothingIn says why a log has no values.
func nothingIn(tags map[string]bool, wanted string) error {
	if wanted == "" || len(tags) == 0 {
		return errors.New("it has no values; write one with weir measure")
	}
	const most = 8
	delete(tags, "")
	known := slices.Sorted(maps.Keys(tags))
	more := ""
	if len(known) == 0 {
		return fmt.Errorf("it has no values of server %s, since its values have no tags; leave `server` out", wanted)
	}
	if len(known) > most {
		known, more = known[:most], " and more"
	}
	return fmt.Errorf("it has no values of server %s; it has the tags %s%s", wanted, strings.Join(known, ", "), more)
}
