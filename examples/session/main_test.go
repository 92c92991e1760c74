package main

import (
	"io"
	"os"
	"testing"

	"github.com/weirhq/weir/examples/internal/lab"
)

// TestProgram runs the program against a server: five mails, of which three are
// granted at once.
func TestProgram(t *testing.T) {
	defer lab.Start()()
	want := "mail to Ada\nmail to Barbara\nmail to Grace\nmail to Radia\nmail to Sophie\nhad to wait: true\n"
	for range 10 { // a machine may be too busy to be limited
		if out := output(t, main); out == want {
			return
		} else {
			t.Logf("the program says %q", out)
		}
	}
	t.Errorf("it never says %q", want)
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
