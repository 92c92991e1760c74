package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
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

// newLog returns the log of a server: one line a message on standard error.
func newLog(std *stdio) *slog.Logger {
	return slog.New(slog.NewTextHandler(std.err, nil))
}

// onHangup calls f on every SIGHUP until the context ends.
func onHangup(ctx context.Context, f func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			f()
		}
	}
}
