package children

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// A Talk is a child process of any program, with whose standard input and output
// its owner talks. Reading and writing are for one goroutine each; End may be called
// by any, once.
type Talk struct {
	io.Writer
	io.Reader

	family *Family
	child  *Child
	output *os.File
}

// Talk starts a program whose name is looked up in PATH. It has to end when its
// standard input does, and is killed three seconds later if it does not. What it
// writes to its standard error goes to stderr. It belongs to the family: End of the
// family ends it too.
func (f *Family) Talk(stderr io.Writer, program string, args ...string) (*Talk, error) {
	c := &Child{name: program, log: newLogReader(), ended: make(chan struct{})}
	c.ordered.Store(true)                  // its owner sees its output end, and is told nothing else
	c.cmd = exec.Command(program, args...) //nolint:noctx // it is ended in order, not killed by a context
	c.cmd.Stderr = stderr
	c.cmd.WaitDelay = pipeGrace
	c.cmd.SysProcAttr = apart()
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	c.stdin = stdin
	output, write, err := os.Pipe()
	if err != nil {
		_ = stdin.Close()
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	c.cmd.Stdout = write
	started := make(chan error, 1)
	f.starts <- func() { started <- c.cmd.Start() }
	err = <-started
	_ = write.Close() // the child has its own
	if err != nil {
		_, _ = stdin.Close(), output.Close()
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	f.mu.Lock()
	f.children = append(f.children, c)
	f.mu.Unlock()
	go func() {
		c.err = c.cmd.Wait()
		// Whoever reads sees the end, also if a grandchild still holds the pipe.
		_ = output.SetReadDeadline(time.Now().Add(pipeGrace))
		close(c.ended)
	}()
	return &Talk{Writer: stdin, Reader: output, family: f, child: c, output: output}, nil
}

// PID returns the process ID, as [Child.PID] does.
func (t *Talk) PID() int { return t.child.PID() }

// End closes the program's standard input, and returns when neither it nor, on
// Unix, anything that it started is left. Reads end.
func (t *Talk) End() {
	t.child.stop()
	_ = killGroup(t.child.cmd.Process) // what it has left behind
	_ = t.output.Close()
	t.family.mu.Lock()
	defer t.family.mu.Unlock()
	t.family.children = slices.DeleteFunc(t.family.children, func(c *Child) bool { return c == t.child })
}
