package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMeasureInterrupted holds that an interruption prints and writes what there is.
func TestMeasureInterrupted(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "rtt.hlog")
	args := []string{"measure", "--server", w.env["SERVER"], "--for", "1h", "--warm-up", "0s", "--rate", "200", "-o", file}
	// A slow machine must not decide it: it is interrupted after longer and longer.
	for wait := 100 * time.Millisecond; wait < time.Minute; wait *= 2 {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		status := run(ctx, args, &stdio{out: &out, err: &errs, getenv: func(name string) string {
			if name == "WEIR_KEY" {
				return w.env["AES"]
			}
			return ""
		}})
		cancel()
		if status != exitOK {
			continue
		}
		if !strings.Contains(out.String(), " (interrupted)\n") {
			t.Errorf("it says %q", out.String())
		}
		written, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(written), "\nTag=") {
			t.Errorf("the file is %q, %v", written, err)
		}
		return
	}
	t.Error("nobody ever answered")
}

// TestOutputMadeMeanwhile holds that a file that appears while measuring is not replaced,
// and what was measured is not lost.
func TestOutputMadeMeanwhile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rtt.hlog")
	o, err := newOutput(name, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.WriteString("mine"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = o.keep()
	o.discard()
	if err == nil || !strings.Contains(err.Error(), "is there already") || !strings.Contains(err.Error(), o.File.Name()) {
		t.Errorf("%v", err)
	}
	for file, want := range map[string]string{name: "another's", o.File.Name(): "mine"} {
		if got, err := os.ReadFile(file); string(got) != want {
			t.Errorf("%s has %q, %v", file, got, err)
		}
	}
}
