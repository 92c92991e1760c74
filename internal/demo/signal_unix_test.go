//go:build unix

package demo

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var (
	processText = regexp.MustCompile(`process (\d+)`)
	fileText    = regexp.MustCompile(`in (\S+/weir-demo-\S+)/demo\.key`)
)

// command is a demo that runs as the command, as a user starts it.
type command struct {
	cmd *exec.Cmd
	out io.ReadCloser
	buf *bufio.Reader
	err strings.Builder

	dir  string
	pids []int
}

func startCommand(t *testing.T) *command {
	t.Helper()
	c := &command{cmd: exec.Command(binary(t), "demo")}
	c.cmd.Stderr = &c.err
	var err error
	if c.out, err = c.cmd.StdoutPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.buf = bufio.NewReader(c.out)
	return c
}

// readUntil reads the output up to the line with this text, and notes which
// processes and files the demo says it has made.
func (c *command) readUntil(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := c.buf.ReadString('\n')
		if err != nil {
			t.Fatalf("before %q: %v; %s", text, err, c.err.String())
		}
		if m := processText.FindStringSubmatch(line); m != nil && strings.Contains(line, " on 127.0.0.1:") {
			pid, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			c.pids = append(c.pids, pid)
		}
		if m := fileText.FindStringSubmatch(line); m != nil {
			c.dir = m[1]
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// ends waits for the demo, and checks how it ended and that nothing is left.
func (c *command) ends(t *testing.T) {
	t.Helper()
	_, _ = io.Copy(io.Discard, c.buf)
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v; %s", err, c.err.String())
	}
	if !regexp.MustCompile(`^weir: the demo was ended: .*(signal received|broken pipe); .*\n$`).MatchString(c.err.String()) {
		t.Errorf("it says: %s", c.err.String())
	}
	if len(c.pids) != 3 {
		t.Errorf("processes %v", c.pids)
	}
	for _, pid := range c.pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if filepath.Base(c.dir) == "." {
		t.Error("no directory is told of")
	} else if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			c := startCommand(t)
			c.readUntil(t, "2/6")
			if err := c.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			c.ends(t)
		})
	}
}

// Whoever reads the output goes away: "weir demo | head".
func TestOutputCloses(t *testing.T) {
	c := startCommand(t)
	c.readUntil(t, "2/6")
	if err := c.out.Close(); err != nil {
		t.Fatal(err)
	}
	c.ends(t)
}
