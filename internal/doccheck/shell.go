package doccheck

import "strings"

// A Command is one use of the weir command in a shell block.
type Command struct {
	Doc  *Document
	Line int      // where it starts
	Args []string // after the command's own name
}

// Commands finds the uses of weir, also as "go run ./cmd/weir", in the shell
// blocks of docs. In a console block only the lines after a prompt are input.
func Commands(docs []*Document) []Command {
	var all []Command
	for _, d := range docs {
		for _, b := range d.Blocks {
			switch b.Lang {
			case "sh", "bash", "shell", "console":
				all = append(all, commandsOf(d, b)...)
			}
		}
	}
	return all
}

func commandsOf(d *Document, b Block) []Command {
	var all []Command
	var line string
	start := 0
	for i, l := range strings.Split(b.Code, "\n") {
		if line == "" {
			start = b.Line + i
			if b.Lang == "console" {
				var prompt bool
				if l, prompt = strings.CutPrefix(strings.TrimSpace(l), "$ "); !prompt {
					continue
				}
			}
		}
		line += l
		if cut, more := strings.CutSuffix(line, `\`); more {
			line = cut + " "
			continue
		}
		for _, words := range split(line) {
			if args, ok := weirArgs(words); ok {
				all = append(all, Command{Doc: d, Line: start, Args: args})
			}
		}
		line = ""
	}
	return all
}

// weirArgs returns the arguments of a simple command, if that is weir's.
func weirArgs(words []string) ([]string, bool) {
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // an assignment before the command
	}
	if len(words) == 0 {
		return nil, false
	}
	switch words[0] {
	case "weir", "bin/weir", "./weir":
		return words[1:], true
	case "go":
		for i, w := range words {
			if w == "./cmd/weir" && words[1] == "run" {
				return words[i+1:], true
			}
		}
	}
	return nil, false
}

// split splits a line of shell into simple commands of words, at operators; the
// insides of $(…) are commands too. It knows quotes, comments and redirections,
// which is as much shell as a document should hold.
func split(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	inWord, redirect := false, false
	endWord := func() {
		if inWord && !redirect {
			words = append(words, word.String())
		}
		if inWord {
			redirect = false
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words, redirect = nil, false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' || c == '"':
			inWord = true
			for i++; i < len(line) && line[i] != c; i++ {
				if sub, n := substitution(line[i:]); c == '"' && n > 0 {
					all = append(all, split(sub)...)
					i += n - 1
					continue
				}
				word.WriteByte(line[i])
			}
		case c == ' ' || c == '\t':
			endWord()
		case c == '#' && !inWord:
			endCommand()
			return all
		case c == '|' || c == '&' || c == ';' || c == '(' || c == ')':
			endCommand()
		case c == '<' || c == '>':
			if strings.Trim(word.String(), "0123456789") == "" {
				word.Reset() // the number of what is redirected
				inWord = false
			}
			endWord()
			redirect = true
			for i+1 < len(line) && (line[i+1] == '>' || line[i+1] == '<' || line[i+1] == '&') {
				i++
			}
		default:
			if sub, n := substitution(line[i:]); n > 0 {
				all = append(all, split(sub)...)
				i += n - 1
				inWord = true
				continue
			}
			inWord = true
			word.WriteByte(c)
		}
	}
	endCommand()
	return all
}

// substitution returns the inside of a $(…) that s starts with, and the length
// of the whole; 0 where there is none.
func substitution(s string) (string, int) {
	if !strings.HasPrefix(s, "$(") {
		return "", 0
	}
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[2:i], i + 1
			}
		}
	}
	return "", 0
}
