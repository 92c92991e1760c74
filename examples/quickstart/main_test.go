package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/examples/internal/lab"
)

// TestProgram runs the program against a server. On a machine so busy that the
// default policy's 60 ms pass without a decision it asks again, as its user would.
func TestProgram(t *testing.T) {
	defer lab.Start()()
	for {
		out := output(t, main)
		if strings.HasPrefix(out, "no decision: weir: no decision in time") {
			continue
		}
		if out != "granted\n" {
			t.Errorf("the program says %q", out)
		}
		return
	}
}

// output returns what f prints.
func output(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
