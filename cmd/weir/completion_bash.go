package main

import (
	"fmt"
	"strings"
)

// bashCompletion works in every bash from 3.2, which has neither compopt nor
// associative arrays.
func bashCompletion(nodes []completionNode) string {
	var b strings.Builder
	b.WriteString(`# bash completion for weir, made by "weir completion bash".

_weir() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= i IFS=$'\n'
    COMPREPLY=()
    # "--flag=value" is three words to bash.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    # Which command is this? Words that lead to none are flags and values.
    for ((i = 1; i < COMP_CWORD; i++)); do
        case $at/${COMP_WORDS[i]} in
`)
	for _, n := range nodes[1:] {
		fmt.Fprintf(&b, "        %s) at=%s ;;\n", n.at(), n.at())
	}
	b.WriteString("        esac\n    done\n    # The value of a flag.\n    case $at:$prev in\n")
	for _, n := range nodes {
		for _, f := range n.flags {
			if f.value {
				fmt.Fprintf(&b, "    %s:--%s)\n        %sreturn ;;\n", n.at(), f.name, bashValue(f))
			}
		}
	}
	b.WriteString("    esac\n    # A flag, a command or an argument.\n    case $at in\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "    '%s')\n        COMPREPLY=($(compgen -W $'%s' -- \"$cur\"))", n.at(), strings.Join(bashWords(n), `\n`))
		for _, arg := range n.args {
			if arg.file {
				b.WriteString("\n        COMPREPLY+=($(compgen -f -- \"$cur\"))")
			}
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n}\n\ncomplete -F _weir weir\n")
	return b.String()
}

// bashValue is the line that offers a flag's values, or nothing.
func bashValue(f completionFlag) string {
	switch {
	case f.file:
		return "COMPREPLY=($(compgen -f -- \"$cur\"))\n        "
	case len(f.values) > 0:
		return fmt.Sprintf("COMPREPLY=($(compgen -W $'%s' -- \"$cur\"))\n        ", strings.Join(f.values, `\n`))
	}
	return ""
}

func bashWords(n completionNode) []string {
	var words []string
	for _, c := range n.commands {
		words = append(words, c.name)
	}
	for _, arg := range n.args {
		words = append(words, arg.values...)
	}
	for _, f := range n.flags {
		words = append(words, "--"+f.name)
	}
	return words
}
