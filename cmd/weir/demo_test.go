package main

import (
	"os"
	"testing"
)

func TestCommandName(t *testing.T) {
	for binary, want := range map[string]string{
		"/tmp/go-build1234/b001/exe/weir": "go run ./cmd/weir",
		"/home/me/.cache/go-build/0c/0c16e7b79d1a8801d2607eff1fee6d6deb18ad62e33548686b0c170210bdca3e-d/weir": "go run ./cmd/weir",
		"/usr/local/bin/weir":   "weir",
		"/home/go-builder/weir": "weir",
	} {
		if got := commandName(binary); got != want {
			t.Errorf("%s is called %q, want %q", binary, got, want)
		}
	}
}

// Only a terminal gets more than plain text, and not one that wants none.
func TestStyled(t *testing.T) {
	plain, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	std, _, _ := testIO("", map[string]string{"TERM": "xterm"})
	if styled(std) {
		t.Error("a buffer is a terminal")
	}
	std.out = plain
	if styled(std) {
		t.Error("a file is a terminal")
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if info, err := device.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Skip("this system's null device is no character device")
	}
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm"}, true},
		{map[string]string{"TERM": "dumb"}, false},
		{map[string]string{}, false},
		{map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
	} {
		std, _, _ := testIO("", tt.env)
		std.out = device
		if got := styled(std); got != tt.want {
			t.Errorf("with %v: %t", tt.env, got)
		}
	}
}
