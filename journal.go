package weir

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir/core"
)

// journal holds the lines for the program's logger, in the order in which things
// happened. A goroutine that lives while there are some hands them over, so that a
// logger that blocks, or asks the client something, holds up no timer and no
// reader. It is guarded by the client's lock.
type journal struct {
	lines   []line
	lost    int  // lines that found no room since one was last handed over
	writing bool // the goroutine runs
}

// line is one line of the log.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// maxLines is how many lines wait for a slow logger. Each is about something that
// happens once a second at most; more say the same again.
const maxLines = 64

// log has a line written. It is called with the lock held, and does nothing once
// the client is closed.
func (c *Client) log(level slog.Level, text string, attrs ...slog.Attr) {
	j := &c.journal
	if c.closed || c.logger == nil {
		return
	}
	if len(j.lines) == maxLines {
		j.lost++
		return
	}
	j.lines = append(j.lines, line{level, text, attrs})
	if !j.writing {
		j.writing = true
		c.wg.Go(c.writeLog)
	}
}

// writeLog hands lines to the logger until none is left.
func (c *Client) writeLog() {
	for {
		l, lost, ok := c.nextLine()
		if !ok {
			return
		}
		c.logger.LogAttrs(context.Background(), l.level, l.text, l.attrs...)
		if lost > 0 {
			c.logger.LogAttrs(context.Background(), slog.LevelWarn, "weir: the logger was too slow; lines are missing", slog.Int("lines", lost))
		}
	}
}

// nextLine takes the oldest line and, if it is the last, how many are missing.
func (c *Client) nextLine() (l line, lost int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := &c.journal
	if len(j.lines) == 0 {
		*j = journal{}
		return line{}, 0, false
	}
	l = j.lines[0]
	j.lines = j.lines[1:]
	if len(j.lines) == 0 {
		lost, j.lost = j.lost, 0
	}
	return l, lost, true
}

// The events of the core that are worth a line. They are called with the lock held.

func (c *Client) logMembership(ev *core.Event) {
	c.log(slog.LevelInfo, "weir: servers known",
		slog.Int("servers", len(ev.Membership)), slog.Int("addresses", ev.Discovered.Endpoints), skipped(ev.Discovered.Skipped))
}

func (c *Client) logFailure(ev *core.Event) {
	c.log(slog.LevelWarn, "weir: discovery failed; what was known stays",
		slog.Any("error", ev.Err), slog.Int("servers", ev.Discovered.Servers), skipped(ev.Discovered.Skipped))
}

// skipped is what was not taken, if anything: handlers leave out a group without
// attributes.
func skipped(s core.Skipped) slog.Attr {
	var attrs []any
	for _, a := range []slog.Attr{
		slog.Uint64("targets", s.Targets), slog.Uint64("future", s.Future), slog.Uint64("failed", s.Failed),
		slog.Uint64("addresses", s.Addresses), slog.Uint64("excess", s.Excess),
	} {
		if a.Value.Uint64() > 0 {
			attrs = append(attrs, a)
		}
	}
	return slog.Group("skipped", attrs...)
}

func (c *Client) logFailingFast() {
	s, still := c.core.FailFast()
	if !still {
		return // a decision of the same instant has ended it
	}
	c.log(slog.LevelWarn, "weir: no server answers; requests fail fast until one does",
		slog.Int("timeouts", s.Timeouts), slog.Int("servers", s.Seen.Servers), slog.Int("addresses", s.Seen.Endpoints))
}

func (c *Client) logRecovered() {
	c.log(slog.LevelInfo, "weir: a server answers again; requests are sent")
}
