package scenario

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/sim"
)

// TestDist holds that a distribution outside of a scenario reads as one in it, and that its mistakes
// name the file.
func TestDist(t *testing.T) {
	open := func(name string) ([]byte, error) {
		switch name {
		case "dir/rtt.hlog":
			return recorded(), nil
		case "empty.txt":
			return nil, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if d, err := Dist("lognormal 1ms 4ms", open); err != nil || d != sim.Lognormal(time.Millisecond, 4*time.Millisecond) {
		t.Errorf("without a file it is %v, %v", d, err)
	}
	for text, want := range map[string]time.Duration{
		"file dir/rtt.hlog server 7 whole": 4 * time.Millisecond,
		"file dir/rtt.hlog server 7":       2 * time.Millisecond,
		"file dir/rtt.hlog whole":          time.Second,
	} {
		d, err := Dist(text, open)
		if got := d.At(1<<64 - 1); err != nil || (got-want).Abs() > want/100 {
			t.Errorf("%s: the longest is %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"file rtt.hlog":              "file rtt.hlog cannot be read: file does not exist",
		"file rtt.csv":               "the name of a file must end in .txt or .hlog",
		"file dir/rtt.hlog server 8": "file dir/rtt.hlog: it has no values of server 8",
		"file dir/rtt.hlog server":   "file dir/rtt.hlog: behind the name there may be",
		"file empty.txt":             "file empty.txt: it has no values",
		"sometimes":                  `"sometimes" is no duration`,
	} {
		if _, err := Dist(text, open); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Dist("file rtt.hlog", open); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there is %v", err)
	}
}
