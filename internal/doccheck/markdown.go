package doccheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// A Document is what matters here of one Markdown file.
type Document struct {
	Path    string          // slash-separated, below the repository's root
	Anchors map[string]bool // what "#name" may name in it
	Links   []Link          // in order
	Blocks  []Block         // fenced code, in order
}

// A Link is one link, image or HTML reference.
type Link struct {
	Line   int
	Target string // as written
}

// A Block is one fenced code block.
type Block struct {
	Line int    // of its first line of code
	Lang string // first word of the info string, lower case
	Note string // the HTML comment directly above, without its brackets
	Code string
}

// A Problem is one thing that is wrong in a document.
type Problem struct {
	Path string
	Line int
	Text string
}

// String returns the problem as one line.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text) }

// Documents reads every Markdown file below root, those of nested modules
// included, but not what lies in testdata or in hidden directories.
func Documents(root string) ([]*Document, error) {
	var docs []*Document
	err := walk(root, ".md", func(path string) error {
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		docs = append(docs, Parse(filepath.ToSlash(rel), string(src)))
		return nil
	})
	return docs, err
}

var (
	fence      = regexp.MustCompile("^( {0,3})(```+|~~~+)\\s*([^`]*)$")
	heading    = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	comment    = regexp.MustCompile(`^<!--\s*(.*?)\s*-->$`)
	codeSpan   = regexp.MustCompile("``[^`].*?``|`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	refLink    = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+"[^"]*")?\s*$`)
	htmlLink   = regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`)
	htmlAnchor = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Parse reads one Markdown file.
func Parse(path, src string) *Document {
	d := &Document{Path: path, Anchors: map[string]bool{}}
	slugs := map[string]int{}
	var block *Block
	var closing, note string
	for i, line := range strings.Split(src, "\n") {
		if block != nil {
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, closing) && strings.Trim(trimmed, closing[:1]) == "" {
				d.Blocks = append(d.Blocks, *block)
				block = nil
				continue
			}
			block.Code += line + "\n"
			continue
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			lang, _, _ := strings.Cut(strings.TrimSpace(m[3]), " ")
			block, closing = &Block{Line: i + 2, Lang: strings.ToLower(lang), Note: note}, m[2]
			note = ""
			continue
		}
		note = ""
		if m := comment.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			note = m[1]
		}
		d.text(i+1, line, slugs)
	}
	return d
}

// text reads a line outside of code blocks.
func (d *Document) text(n int, line string, slugs map[string]int) {
	if m := heading.FindStringSubmatch(line); m != nil {
		s := slug(m[1])
		if k := slugs[s]; k > 0 {
			d.Anchors[fmt.Sprintf("%s-%d", s, k)] = true
		} else {
			d.Anchors[s] = true
		}
		slugs[s]++
	}
	line = codeSpan.ReplaceAllString(line, "``")
	for _, m := range htmlAnchor.FindAllStringSubmatch(line, -1) {
		d.Anchors[m[1]] = true
	}
	for _, re := range []*regexp.Regexp{inlineLink, refLink, htmlLink} {
		for _, m := range re.FindAllStringSubmatch(line, -1) {
			d.Links = append(d.Links, Link{Line: n, Target: m[1]})
		}
	}
}

// slug returns the anchor that a heading gets where Markdown is shown: lower
// case, spaces as hyphens, everything else but letters, digits, hyphens and
// underscores gone.
func slug(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// walk calls visit with every file below root that has an extension, but not with
// what lies in testdata or in hidden directories.
func walk(root, ext string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ext:
			return nil
		}
		return visit(path)
	})
}
