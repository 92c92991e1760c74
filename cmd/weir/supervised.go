package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// supervised are the flags of commands that run until they are stopped.
type supervised struct {
	ExitWithStdin bool `help:"End when standard input ends, for a parent process that may die without a word."`
}

// supervise returns a context that also ends with standard input, if that was
// asked for.
func (s *supervised) supervise(ctx context.Context, std *stdio) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.ExitWithStdin {
		// The read ends with the pipe or with this process, whichever is first.
		go func() {
			_, _ = io.Copy(io.Discard, std.in)
			cancel()
		}()
	}
	return ctx, cancel
}

// newLog returns the log of a server: one line a message on standard error, in
// format "text" or "json".
func newLog(std *stdio, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(std.err, nil))
	}
	return slog.New(slog.NewTextHandler(std.err, nil))
}

// hangups are the SIGHUPs that came since they were caught; several that nobody has
// seen to are as one.
type hangups chan os.Signal

// catchHangups catches SIGHUP, which would end the process: first of all, as a reload
// may be asked for while a start still reads what is to be reloaded.
func catchHangups() hangups {
	h := make(hangups, 1)
	signal.Notify(h, syscall.SIGHUP)
	return h
}

// stop catches no more.
func (h hangups) stop() { signal.Stop(h) }

// follow calls f on every SIGHUP until the context ends, in one of the tasks.
func (h hangups) follow(ctx context.Context, tasks *sync.WaitGroup, f func()) {
	tasks.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-h:
				f()
			}
		}
	})
}
