//go:build unix

package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/sim/scenario"
)

// TestDataIsRegular names a pipe without a writer as data, which whoever opened it would wait for.
func TestDataIsRegular(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "rtt.txt")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(dir, "shop.yaml")
	text := "buckets: {shop: 1/s}\nnetwork: {delay: file rtt.txt}\nclients: {web: {poisson: 1/s, ask: shop}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "rtt.txt cannot be read: it is no regular file"
	if _, err := scenario.Load(file); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Load says %v, not %q", err, want)
	}
	if _, err := scenario.Dist("file "+pipe, scenario.ReadData); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Dist says %v, not %q", err, want)
	}
}
