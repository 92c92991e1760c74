package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/weirhq/weir/internal/demo"
)

type demoCmd struct {
	Keep bool `help:"Leave the servers running at the end, and print how to reach them, until Ctrl-C."`
}

// Help is the command's long help.
func (*demoCmd) Help() string {
	return fmt.Sprintf(`The first minute with Weir: it makes a key, starts a DNS server and two r-servers as processes of their own, asks them with a client, trips a latency guard, kills the oldest server under load, and shows with figures what happened. It takes about %d seconds, uses loopback only, and leaves nothing behind.

The exit status is 0 when everything happened as promised.

    weir demo
    weir demo --keep`, int(demo.Pace{}.Expected().Seconds()))
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context, std *stdio) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the demo runs this program again, and cannot find it: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is gone
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Whoever read the output may be gone as well. That must end the demo in
	// order, not this process at the next line.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	text := demo.NewText(std.out, commandName(binary), styled(std), cancel)
	_, err = demo.Run(ctx, demo.Config{Binary: binary, Keep: c.Keep, Narrator: text})
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("the demo was ended: %w; its processes are stopped and its files removed", err)
	}
	if errors.Is(err, demo.ErrPromise) {
		return statusError{code: exitFailure} // said already
	}
	return err
}

// goRun matches where "go run" keeps the program, in a temporary directory or in
// the build cache, which are no places to call it from.
var goRun = regexp.MustCompile(`/go-build\d+/.*/exe/|/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// commandName is how the user calls this program.
func commandName(binary string) string {
	if goRun.MatchString(filepath.ToSlash(binary)) {
		return "go run ./cmd/weir"
	}
	return "weir"
}

// styled reports whether the output is a terminal that may be given more than
// plain text.
func styled(std *stdio) bool {
	f, ok := std.out.(*os.File)
	if !ok || std.getenv("NO_COLOR") != "" || std.getenv("TERM") == "dumb" || std.getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
