package main

import (
	"bufio"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/internal/simreport"
	"github.com/weirhq/weir/sim/scenario"
)

// sources returns the texts of scenarios, if there is to be a report of them.
func sources(report string, names []string) ([]string, error) {
	if report == "" {
		return nil, nil
	}
	var texts []string
	for _, name := range names {
		text, err := scenario.Source(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// newReport begins the file of a report, before anything is played, and is no file if there is to be none.
func newReport(name string, scenarios []string) (*output, error) {
	if err := notOver(name, filesOf(scenarios)...); err != nil {
		return nil, usage(fmt.Errorf("--report: %w", err))
	}
	return newOutput(name, true)
}

// filesOf are the files that scenarios may be read from: one is named, or a variant behind it.
func filesOf(scenarios []string) (files []string) {
	for _, name := range scenarios {
		files = append(files, name, filepath.Dir(name))
	}
	return files
}

// writeReport writes comparisons and the texts of their scenarios into a file, if there is to be one. args
// are those of the command that made them.
func writeReport(file *output, args []string, comparisons []simcompare.Comparison, texts []string) error {
	if file.File == nil {
		return nil
	}
	p := &simreport.Page{Command: commandLine(args), Version: thisVersion()}
	for i := range comparisons {
		p.Parts = append(p.Parts, simreport.Part{Comparison: &comparisons[i], Text: texts[i]})
	}
	out := bufio.NewWriter(file)
	if err := simreport.Write(out, p); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.keep()
}

// thisVersion is what weir version prints, in one line.
func thisVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	var b strings.Builder
	_ = printVersion(&b, info) // a strings.Builder takes everything
	return strings.TrimSpace(b.String())
}

// commandLine writes the program's name and its arguments as a shell reads them.
func commandLine(args []string) string {
	words := []string{"weir"}
	for _, arg := range args {
		words = append(words, shellWord(arg))
	}
	return redact(strings.Join(words, " "))
}

// shellWord quotes what a shell would read otherwise.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
