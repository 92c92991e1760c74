package doccheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Files checks that the blocks that show a file of the repository at root show
// it as it is.
func Files(root string, docs []*Document) []Problem {
	var found []Problem
	for _, d := range docs {
		for _, b := range d.Blocks {
			name, ok := strings.CutPrefix(b.Note, "file:")
			if !ok {
				continue
			}
			name = strings.TrimSpace(name)
			want, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			switch {
			case err != nil:
				found = append(found, Problem{d.Path, b.Line, fmt.Sprintf("there is no %s to show", name)})
			case b.Code != string(want):
				found = append(found, Problem{d.Path, b.Line, fmt.Sprintf("this is not %s as it is", name)})
			}
		}
	}
	return found
}
