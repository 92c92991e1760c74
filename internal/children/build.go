package children

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds the weir command into a directory and returns its path: for tests,
// which have the go command and the module around them. The error repeats what
// the go command said.
func Build(ctx context.Context, dir string) (string, error) {
	const command = "github.com/weirhq/weir/cmd/weir"
	// The name that go gives it has the system's suffix.
	out, err := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	matches, err := filepath.Glob(filepath.Join(dir, "weir*"))
	if err != nil || len(matches) != 1 {
		return "", fmt.Errorf("build %s: it made %v in %s (%w)", command, matches, dir, err)
	}
	return matches[0], nil
}
