package children

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
)

const (
	keptLines = 20
	maxLine   = 8 << 10 // bytes; what is longer is not a line of ours
)

// logReader takes in the log of a child: it keeps the last lines, and hands out
// the attributes of the one that says that the child serves.
type logReader struct {
	serving chan map[string]string // gets one value at most

	mu    sync.Mutex
	open  []byte // the line that is not complete yet
	lines []string
	found bool
}

func newLogReader() *logReader {
	return &logReader{serving: make(chan map[string]string, 1)}
}

// Write implements io.Writer; it never fails.
func (l *logReader) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, b...)
	for {
		end := bytes.IndexByte(l.open, '\n')
		if end < 0 {
			break
		}
		l.line(string(l.open[:end]))
		l.open = l.open[end+1:]
	}
	if len(l.open) > maxLine {
		l.open = nil
	}
	return len(b), nil
}

func (l *logReader) line(s string) {
	if l.lines = append(l.lines, s); len(l.lines) > keptLines {
		l.lines = l.lines[1:]
	}
	if l.found {
		return
	}
	if attrs := attributes(s); attrs["msg"] == "serving" {
		l.found = true
		l.serving <- attrs
	}
}

// last returns the last lines in one.
func (l *logReader) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return "empty"
	}
	return strings.Join(l.lines[max(0, len(l.lines)-errorLines):], " | ")
}

// attributes takes a line of key=value pairs apart, as log/slog's text handler
// writes them; values may be quoted. What is not one is skipped.
func attributes(line string) map[string]string {
	attrs := map[string]string{}
	for line != "" {
		line = strings.TrimLeft(line, " ")
		key, rest, ok := strings.Cut(line, "=")
		if !ok {
			break
		}
		if i := strings.LastIndexByte(key, ' '); i >= 0 { // words before a pair
			key = key[i+1:]
		}
		var value string
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && rest[0] == '"' {
			value, _ = strconv.Unquote(quoted) // it is well formed
			line = rest[len(quoted):]
		} else {
			value, line, _ = strings.Cut(rest, " ")
		}
		attrs[key] = value
	}
	return attrs
}
