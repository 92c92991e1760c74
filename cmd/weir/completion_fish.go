package main

import (
	"fmt"
	"strings"
)

func fishCompletion(nodes []completionNode) string {
	var b strings.Builder
	b.WriteString(`# fish completion for weir, made by "weir completion fish".

# Whether the commands typed so far lead to the one named.
function __weir_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l at ''
    for word in $words
        switch $at/$word
            case`)
	for _, n := range nodes[1:] {
		b.WriteString(" " + n.at())
	}
	b.WriteString(`
                set at $at/$word
        end
    end
    test "$at" = "$argv[1]"
end

complete -c weir -f
`)
	for _, n := range nodes {
		start := "complete -c weir -n '__weir_at \"" + n.at() + "\"'"
		for _, c := range n.commands {
			fmt.Fprintf(&b, "%s -a %s -d '%s'\n", start, c.name, fishQuoted(c.help))
		}
		for _, arg := range n.args {
			if arg.file {
				fmt.Fprintf(&b, "%s -F\n", start)
			}
			if len(arg.values) > 0 {
				fmt.Fprintf(&b, "%s -a '%s' -d '%s'\n", start, strings.Join(arg.values, " "), fishQuoted(arg.help))
			}
		}
		for _, f := range n.flags {
			fmt.Fprintf(&b, "%s -l %s%s -d '%s'\n", start, f.name, fishFlag(f), fishQuoted(f.help))
		}
	}
	return b.String()
}

func fishFlag(f completionFlag) string {
	var options string
	if f.short != 0 {
		options = fmt.Sprintf(" -s %c", f.short)
	}
	switch {
	case f.file:
		options += " -r -F"
	case len(f.values) > 0:
		options += " -x -a '" + strings.Join(f.values, " ") + "'"
	case f.value:
		options += " -x"
	}
	return options
}

// fishQuoted escapes what means something between single quotes.
func fishQuoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
}
