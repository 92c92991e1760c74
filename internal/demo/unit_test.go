package demo

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestAttributes(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"time=1 level=INFO msg=serving listen=[127.0.0.1:1] zone=rl.test": {"time": "1", "level": "INFO", "msg": "serving", "listen": "[127.0.0.1:1]", "zone": "rl.test"},
		`msg="two words" a="x=\"y\" z" b=`:                                {"msg": "two words", "a": `x="y" z`, "b": ""},
		"no pairs at all":                                                 {},
		"words first a=b":                                                 {"a": "b"},
		`a="open`:                                                         {"a": `"open`},
		"":                                                                {},
	} {
		if got := attributes(line); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add(`time=1 msg="a b" x="`)
	f.Fuzz(func(t *testing.T, line string) { attributes(line) })
}

func TestLogReader(t *testing.T) {
	l := newLogReader()
	if l.last() != "empty" {
		t.Errorf("a new log ends in %q", l.last())
	}
	for _, part := range []string{"one\ntw", "o\nmsg=serv", "ing dns=1\nmsg=serving dns=2\n", strings.Repeat("x", maxLine+1), "\n"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	select {
	case attrs := <-l.serving:
		if attrs["dns"] != "1" {
			t.Errorf("serving: %v", attrs)
		}
	default:
		t.Error("not serving")
	}
	if got := l.last(); got != "msg=serving dns=1 | msg=serving dns=2 | " {
		t.Errorf("the log ends in %q", got)
	}
	for i := range 3 * keptLines {
		fmt.Fprintln(l, i)
	}
	if len(l.lines) != keptLines {
		t.Errorf("%d lines are kept", len(l.lines))
	}
}

func TestPercentile(t *testing.T) {
	d := make([]time.Duration, 0, 100)
	for i := range 100 {
		d = append(d, time.Duration(100-i))
	}
	for p, want := range map[int]time.Duration{1: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(d, p); got != want {
			t.Errorf("p%d is %d", p, got)
		}
	}
	if percentile(nil, 50) != 0 || percentile([]time.Duration{7}, 1) != 7 || percentile([]time.Duration{7}, 99) != 7 || percentile([]time.Duration{1, 2}, 50) != 1 {
		t.Error("the percentiles of few values are wrong")
	}
}

func TestExpectedFitsTheBar(t *testing.T) {
	if e := (Pace{}).Expected(); e < 15*time.Second || e > 25*time.Second {
		t.Errorf("a demo takes about %v", e)
	}
	if l := (Pace{}).orDefault().Limit; l >= time.Minute {
		t.Errorf("a demo may take %v", l)
	}
}
