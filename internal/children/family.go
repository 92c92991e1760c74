package children

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stopGrace  = 3 * time.Second // for a child to end by itself
	pipeGrace  = time.Second     // for its output to be read after that
	errorLines = 3               // of a child's log that an error repeats
)

// A Family starts child processes and ends them. No child outlives it: each one
// is told to end when its standard input ends, which happens with this process
// however it dies, and on Linux the kernel kills it besides. Make one with [New]
// and end it with [Family.End]. Its methods are safe for concurrent use.
type Family struct {
	binary string
	lost   func(error) // told when a child ends that nobody ended

	// Children are started by one thread that lives as long as the family: the
	// kernel takes the death of the starting thread for the parent's.
	starts chan func()
	thread sync.WaitGroup

	mu       sync.Mutex
	children []*Child
}

// New returns a family whose children run a binary, the weir command. lost is
// called, from a goroutine of its own, with a [*LostError] when a child ends that
// nobody here has ended.
func New(binary string, lost func(error)) *Family {
	f := &Family{binary: binary, lost: lost, starts: make(chan func())}
	f.thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for start := range f.starts {
			start()
		}
	})
	return f
}

// A Child is one process. Its log is read for the line that says that it serves.
// Its methods are safe for concurrent use.
type Child struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.Closer
	log     *logReader
	ended   chan struct{}
	err     error       // set before ended is closed
	ordered atomic.Bool // somebody here wants it to end
}

// Start starts the binary with these arguments, which have to name a command that
// knows the flag --exit-with-stdin. The name is for errors. The child gets this
// process's environment without the settings of Weir.
func (f *Family) Start(name string, args ...string) (*Child, error) {
	c := &Child{name: name, log: newLogReader(), ended: make(chan struct{})}
	c.cmd = exec.Command(f.binary, append(args, "--exit-with-stdin")...) //nolint:noctx // it is ended in order, not killed by a context
	c.cmd.Env = environment()
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.WaitDelay = pipeGrace
	c.cmd.SysProcAttr = apart()
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.stdin = stdin
	started := make(chan error, 1)
	f.starts <- func() { started <- c.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s (%s): %w", name, f.binary, err)
	}
	f.mu.Lock()
	f.children = append(f.children, c)
	f.mu.Unlock()
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
		if !c.ordered.Load() {
			f.lost(c.unexpected())
		}
	}()
	return c, nil
}

// Serving waits until the child has logged that it serves, and returns the
// attributes of that line. It may be called once. The error is a [*LostError] if
// the child has ended, or says that ctx has, and repeats the end of the log.
func (c *Child) Serving(ctx context.Context) (map[string]string, error) {
	select {
	case attrs := <-c.log.serving:
		return attrs, nil
	case <-c.ended:
		return nil, c.unexpected()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not serve yet: %w; its log: %s", c.name, context.Cause(ctx), c.log.last())
	}
}

func (c *Child) unexpected() error {
	how := "with exit status 0"
	if c.err != nil {
		how = "with " + c.err.Error()
	}
	return &LostError{Child: c.name, How: how, Log: c.log.last()}
}

// LostError says that a child ended that nobody ended.
type LostError struct {
	Child string // the name that it was started under
	How   string // its exit status or signal, in words
	Log   string // the last lines of its log, in one
}

// Error says all of that.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s ended by itself %s; its log: %s", e.Child, e.How, e.Log)
}

// PID returns the process ID, which the system may give to another process once
// the child has ended.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Kill ends the child without a warning and returns when it is dead. The error is
// the system's.
func (c *Child) Kill() error {
	c.ordered.Store(true)
	err := killGroup(c.cmd.Process)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", c.name, err)
	}
	<-c.ended
	return nil
}

// stop asks the child to end, and kills it if it does not.
func (c *Child) stop() {
	c.ordered.Store(true)
	_ = c.stdin.Close()
	patience := time.NewTimer(stopGrace)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
		_ = c.Kill()
	}
}

// End stops all children, and returns when none is left. It is called once, and
// nothing is started after it.
func (f *Family) End() {
	f.mu.Lock()
	children := slices.Clone(f.children)
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(c.stop)
	}
	wg.Wait()
	close(f.starts)
	f.thread.Wait()
}

// environment is this process's without the settings of Weir: the children have
// what they need on their command lines.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WEIR_") || strings.HasPrefix(v, "RATELIMITLY_")
	})
}
