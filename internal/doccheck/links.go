package doccheck

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Links checks every link that stays in the repository: its file or directory
// exists below root, and the anchor is one of that file's. Links with a scheme
// are not followed.
func Links(root string, docs []*Document) []Problem {
	byPath := map[string]*Document{}
	for _, d := range docs {
		byPath[d.Path] = d
	}
	var found []Problem
	for _, d := range docs {
		for _, l := range d.Links {
			if text := checkLink(root, d, l.Target, byPath); text != "" {
				found = append(found, Problem{d.Path, l.Line, text})
			}
		}
	}
	return found
}

// checkLink returns what is wrong with a link, or "".
func checkLink(root string, d *Document, target string, docs map[string]*Document) string {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Sprintf("link %s: %v", target, err)
	}
	if u.Scheme != "" {
		return ""
	}
	if strings.HasPrefix(target, "/") {
		return fmt.Sprintf("link %s: write it relative to the file", target)
	}
	to := d.Path
	if u.Path != "" {
		to = path.Join(path.Dir(d.Path), u.Path)
	}
	if to == ".." || strings.HasPrefix(to, "../") {
		return fmt.Sprintf("link %s leads out of the repository", target)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
		return fmt.Sprintf("link %s: there is no %s", target, to)
	}
	if u.Fragment == "" {
		return ""
	}
	other := docs[to]
	if other == nil {
		return fmt.Sprintf("link %s: %s is no Markdown file, it has no anchors", target, to)
	}
	if !other.Anchors[u.Fragment] {
		return fmt.Sprintf("link %s: %s has no heading or anchor %q", target, to, u.Fragment)
	}
	return ""
}
