package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is the command's long help.
func (*completionCmd) Help() string {
	return `The script completes commands, flags and values.

    source <(weir completion bash)                      # this bash session
    weir completion bash > /etc/bash_completion.d/weir  # every bash session
    weir completion zsh > "${fpath[1]}/_weir"
    weir completion fish > ~/.config/fish/completions/weir.fish`
}

// Run prints the script.
func (c *completionCmd) Run(app *kong.Context, std *stdio) error {
	return writeCompletion(std.out, c.Shell, app.Model)
}

// writeCompletion writes the completion script of a shell for a command line.
func writeCompletion(w io.Writer, shell string, app *kong.Application) error {
	nodes := completionNodes(app)
	var script string
	switch shell {
	case "bash":
		script = bashCompletion(nodes)
	case "zsh":
		script = zshCompletion(nodes)
	case "fish":
		script = fishCompletion(nodes)
	default:
		return usage(fmt.Errorf("there is no completion for %q; there is for bash, zsh and fish", shell))
	}
	_, err := io.WriteString(w, script)
	return err
}
