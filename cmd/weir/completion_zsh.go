package main

import (
	"fmt"
	"strings"
)

func zshCompletion(nodes []completionNode) string {
	var b strings.Builder
	b.WriteString("#compdef weir\n# zsh completion for weir, made by \"weir completion zsh\".\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "\n%s() {\n", zshFunction(n.path))
		if len(n.commands) > 0 {
			zshGroup(&b, n)
		} else {
			b.WriteString("    _arguments -S" + zshSpecs(n) + "\n")
		}
		b.WriteString("}\n")
	}
	// Autoloaded from fpath the file is the function's body; sourced, it is not.
	b.WriteString("\nif [[ $funcstack[1] == _weir ]]; then\n    _weir \"$@\"\nelse\n    compdef _weir weir\nfi\n")
	return b.String()
}

// zshGroup completes the name of a command and then what belongs to it.
func zshGroup(b *strings.Builder, n completionNode) {
	b.WriteString("    local curcontext=$curcontext context state state_descr line\n    typeset -A opt_args\n")
	b.WriteString("    _arguments -C -S" + zshSpecs(n) + " \\\n        '1: :->command' \\\n        '*:: :->rest'\n")
	b.WriteString("    case $state in\n    command)\n        local -a commands=(\n")
	for _, c := range n.commands {
		fmt.Fprintf(b, "            '%s:%s'\n", c.name, shellQuoted(c.help))
	}
	b.WriteString("        )\n        _describe -t commands command commands ;;\n    rest)\n        case $line[1] in\n")
	for _, c := range n.commands {
		fmt.Fprintf(b, "        %s) %s ;;\n", c.name, zshFunction(append(n.path[:len(n.path):len(n.path)], c.name)))
	}
	b.WriteString("        esac ;;\n    esac\n")
}

func zshFunction(path []string) string {
	return "_weir" + strings.Join(append([]string{""}, path...), "_")
}

// zshSpecs writes the flags and arguments for _arguments, each on a line.
func zshSpecs(n completionNode) string {
	var b strings.Builder
	for _, f := range n.flags {
		repeat := ""
		if f.repeat {
			repeat = "*"
		}
		spec := fmt.Sprintf("'%s--%s", repeat, f.name)
		if f.short != 0 {
			spec = fmt.Sprintf("'(-%c --%s)'{-%c,--%s}'", f.short, f.name, f.short, f.name)
		}
		if f.value {
			spec += "="
		}
		spec += "[" + zshQuoted(f.help) + "]"
		if f.value {
			spec += ":" + f.name + ":" + zshAction(f)
		}
		b.WriteString(" \\\n        " + spec + "'")
	}
	for _, arg := range n.args {
		repeat := ""
		if arg.repeat {
			repeat = "*"
		}
		b.WriteString(" \\\n        '" + repeat + ":" + zshQuoted(arg.name) + ":" + zshAction(arg) + "'")
	}
	return b.String()
}

func zshAction(f completionFlag) string {
	switch {
	case f.file && len(f.values) > 0:
		return "{compadd -- " + strings.Join(f.values, " ") + "; _files}"
	case f.file:
		return "_files"
	case len(f.values) > 0:
		return "(" + strings.Join(f.values, " ") + ")"
	}
	return " "
}

// zshQuoted escapes what means something inside a specification.
func zshQuoted(s string) string {
	return strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

// shellQuoted escapes what means something between single quotes.
func shellQuoted(s string) string {
	return strings.ReplaceAll(s, "'", `'\''`)
}
