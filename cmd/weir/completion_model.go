package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim/scenario"
)

// completionNode is one command, or group of commands, as a completion script
// needs it.
type completionNode struct {
	path     []string // the words that lead to it; none for the program itself
	commands []completionWord
	flags    []completionFlag // those of the commands above included
	args     []completionFlag // positional arguments
}

type completionWord struct {
	name, help string
}

type completionFlag struct {
	completionWord
	short  rune // 0 without a short form
	value  bool // takes a value
	repeat bool // may be given again
	file   bool // the value is a file's name
	values []string
}

// at names a node for a script: "" for the program, "/key/new" for weir key new.
func (n *completionNode) at() string {
	if len(n.path) == 0 {
		return ""
	}
	return "/" + strings.Join(n.path, "/")
}

// completionNodes lists a command line's visible commands, the program first,
// each group before what is in it.
func completionNodes(app *kong.Application) []completionNode {
	var nodes []completionNode
	var walk func(n *kong.Node, path []string)
	walk = func(n *kong.Node, path []string) {
		node := completionNode{path: path}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				flag := completionValue(f.Value)
				flag.short = f.Short
				node.flags = append(node.flags, flag)
			}
		}
		for _, arg := range n.Positional {
			node.args = append(node.args, completionValue(arg))
		}
		at := len(nodes)
		nodes = append(nodes, completionNode{})
		for _, child := range n.Children {
			if child.Hidden || child.Type != kong.CommandNode {
				continue
			}
			node.commands = append(node.commands, completionWord{child.Name, child.Help})
			walk(child, append(path[:len(path):len(path)], child.Name))
		}
		nodes[at] = node
	}
	walk(app.Node, nil)
	return nodes
}

func completionValue(v *kong.Value) completionFlag {
	c := completionFlag{
		completionWord: completionWord{v.Name, v.Help},
		value:          !v.IsBool() && !v.IsCounter(),
		repeat:         v.IsCumulative(),
		file:           strings.HasSuffix(v.Tag.Type, "path") || strings.HasSuffix(v.Tag.Type, "file"),
	}
	switch v.Tag.Get("complete") {
	case "scenarios":
		c.values = scenarioNames()
		c.file = true // or one of the user's own
	case "measures":
		c.values = measureNames()
	}
	for _, value := range v.EnumSlice() {
		if value != "" {
			c.values = append(c.values, value)
		}
	}
	return c
}

// scenarioNames are the scenarios of the library, and their variants.
func scenarioNames() []string {
	var names []string
	for _, name := range scenario.List() {
		names = append(names, name)
		variants, err := scenario.Variants(name)
		if err != nil { // it is one of ours, which tests read
			continue
		}
		names = append(names, variants...)
	}
	return names
}

// measureNames are the groups of measures, and the measures.
func measureNames() []string {
	var groups, measures []string
	for _, g := range simcompare.Groups() {
		groups = append(groups, g.Name)
		measures = append(measures, g.Scalars...)
	}
	return append(groups, measures...)
}
