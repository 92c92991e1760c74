package scenario

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/sim"
)

// recorded is a log of two servers, one of which has two addresses, and of no server.
func recorded() []byte {
	return logOf(3, map[string][]time.Duration{
		"7":               {2 * time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
		"77@10.0.0.1:292": {20 * time.Millisecond},
		"77@[::1]:292":    {40 * time.Millisecond},
		"":                {time.Second},
	})
}

// logOf writes a log as weir measure does.
func logOf(digits int, tags map[string][]time.Duration) []byte {
	var b bytes.Buffer
	log := hdr.NewHistogramLogWriter(&b)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(log.OutputLogFormatVersion())
	must(log.OutputLegend())
	for _, tag := range []string{"", "7", "77@10.0.0.1:292", "77@[::1]:292"} {
		if len(tags[tag]) == 0 {
			continue
		}
		h := hdr.New(1, int64(time.Minute), digits)
		h.SetTag(tag)
		for _, d := range tags[tag] {
			must(h.RecordValue(int64(d)))
		}
		must(log.OutputIntervalHistogram(h))
	}
	return b.Bytes()
}

// A log is read as a whole or one server of it, halved or not.
func TestReadLog(t *testing.T) {
	const ms = time.Millisecond
	for words, want := range map[string][]sample{
		"":                             {{1 * ms, 2}, {2 * ms, 1}, {10 * ms, 1}, {20 * ms, 1}, {500 * ms, 1}},
		"whole":                        {{2 * ms, 2}, {4 * ms, 1}, {20 * ms, 1}, {40 * ms, 1}, {1000 * ms, 1}},
		"server 7":                     {{1 * ms, 2}, {2 * ms, 1}},
		"server 77 whole":              {{20 * ms, 1}, {40 * ms, 1}},
		"whole server 77@10.0.0.1:292": {{20 * ms, 1}},
	} {
		got, err := readLog(recorded(), strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(g, w sample) bool {
			return g.count == w.count && (g.value-w.value).Abs() <= w.value/1000
		}) {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
}

// In a scenario it is a delay, and says so behind the name.
func TestLogAsDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"file rtt.hlog":                   500 * time.Millisecond,
		"file rtt.hlog server 77":         20 * time.Millisecond,
		"file rtt.hlog  server 7  whole ": 4 * time.Millisecond,
	} {
		s, err := Parse([]byte(whole+"network: {delay: '"+text+"'}\n"), beside)
		if err != nil {
			t.Fatal(err)
		}
		var most sim.Dist
		for _, l := range s.Links {
			most = l.Delay
		}
		if got := most.At(1<<64 - 1); (got - want).Abs() > want/1000 {
			t.Errorf("%s: at most %v, want %v", text, got, want)
		}
	}
}

func TestLogMistakes(t *testing.T) {
	fine := logOf(5, map[string][]time.Duration{"7": {time.Millisecond}})
	good := string(recorded())
	for _, c := range []struct{ data, words, want string }{
		{"", "", "it has no values; write one with weir measure"},
		{"# nothing\n\n", "server 7", "it has no values; write one"},
		{good, "server 8", "it has no values of server 8; it has the tags 7, 77@10.0.0.1:292, 77@[::1]:292"},
		{string(logOf(3, map[string][]time.Duration{"": {time.Millisecond}})), "server 8", "it has no values of server 8, since its values have no tags; leave"},
		{good, "half", "behind the name there may be `server` with an ID"},
		{good, "server", "behind the name"},
		{good, "whole whole", "behind the name"},
		{good, "server 7 server 8", "behind the name"},
		{"1ms 20\n", "", "line 1: it is no interval of an HDR histogram log"},
		{"#\n\nTag=7\n", "", "line 3: it is no interval"},
		{"Tag=7,1,2,3,HISTF\n", "", "line 1: the histogram cannot be read: "},
		{good + "1,2,3,\n", "", "line 7: the histogram cannot be read: "},
		{string(fine), "", "line 3: the histogram has 5 significant digits; record with 4 at most"},
	} {
		if _, err := readLog([]byte(c.data), strings.Fields(c.words)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.words, err, c.want)
		}
	}
}

// logTarget holds that whatever is taken has values in order, which were seen, and that
// halves are of the same round trips.
func logTarget() *storm.Target {
	target := storm.New2("FuzzReadLog", func(t testing.TB, data, tag string) {
		words := []string{"server", tag}
		if tag == "" {
			words = nil
		}
		halves, err := readLog([]byte(data), words)
		wholes, other := readLog([]byte(data), append(words, "whole"))
		if (err == nil) != (other == nil) || (err == nil) != (len(halves) > 0) {
			t.Fatalf("%v, and whole %v", err, other)
		}
		sum := func(samples []sample) (n uint64) {
			for i, s := range samples {
				if s.value < 0 || s.count == 0 || i > 0 && s.value <= samples[i-1].value {
					t.Fatalf("sample %d of %v", i, samples)
				}
				n += s.count
			}
			return n
		}
		if sum(halves) != sum(wholes) {
			t.Fatalf("%d halves of %d", sum(halves), sum(wholes))
		}
		if err == nil && halves[len(halves)-1].value != wholes[len(wholes)-1].value/2 {
			t.Fatalf("the longest is %v of %v", halves[len(halves)-1].value, wholes[len(wholes)-1].value)
		}
	})
	// Of few digits, which are read many times as fast.
	for _, tag := range []string{"", "7", "77"} {
		target.Add(string(logOf(1, map[string][]time.Duration{"": {1}, "7": {0, time.Minute}, "77@[::1]:292": {time.Second}})), tag)
		target.Add(string(logOf(0, map[string][]time.Duration{"7": {0, time.Minute}})), tag)
	}
	target.Add("#[StartTime: 1 (seconds since epoch)]\n\"StartTimestamp\"\nTag=7,1.5,2,3,HISTF\n", "7")
	return target
}

func FuzzReadLog(f *testing.F)      { logTarget().Fuzz(f) }
func TestStormReadLog(t *testing.T) { logTarget().Storm(t) }
