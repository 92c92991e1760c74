//go:build unix

package server

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe is refused at once, and not when somebody writes to it.
func TestSecretFileIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecretFile(path); err == nil || err.Error() != "it is not a regular file" {
		t.Errorf("error %v", err)
	}
}
