//go:build unix

package dnszone

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in the place of the members file is refused, and not waited for.
func TestMembersFileIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadMembers(path); err == nil || !strings.HasSuffix(err.Error(), "members.yaml: it is not a regular file") {
		t.Errorf("error %v", err)
	}
}
