package children

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/storm"
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

func attributesTarget() *storm.Target {
	target := storm.New("FuzzAttributes", func(_ testing.TB, line string) { attributes(line) })
	target.Add(`time=1 msg="a b" x="`)
	return target
}

func FuzzAttributes(f *testing.F)      { attributesTarget().Fuzz(f) }
func TestStormAttributes(t *testing.T) { attributesTarget().Storm(t) }

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
