package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestCompletionIsComplete holds that every visible command, flag and value of
// the real command line is in each script.
func TestCompletionIsComplete(t *testing.T) {
	app := model(t)
	nodes := completionNodes(app)
	for _, leaf := range app.Leaves(true) {
		at := slices.IndexFunc(nodes, func(n completionNode) bool { return strings.Join(n.path, " ") == leaf.Path() })
		if at < 0 {
			t.Errorf("weir %s is not completed", leaf.Path())
			continue
		}
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				if !slices.ContainsFunc(nodes[at].flags, func(c completionFlag) bool { return c.name == f.Name }) {
					t.Errorf("weir %s: --%s is not completed", leaf.Path(), f.Name)
				}
			}
		}
	}
	for shell, flag := range map[string]string{"bash": "--%s", "zsh": "--%s", "fish": "-l %s "} {
		var script strings.Builder
		if err := writeCompletion(&script, shell, app); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			for _, c := range n.commands {
				if !strings.Contains(script.String(), c.name) {
					t.Errorf("%s: no command %s", shell, c.name)
				}
			}
			for _, f := range n.flags {
				if !strings.Contains(script.String(), fmt.Sprintf(flag, f.name)) {
					t.Errorf("%s: no flag --%s", shell, f.name)
				}
			}
			for _, f := range append(n.flags[:len(n.flags):len(n.flags)], n.args...) {
				for _, v := range f.values {
					if !strings.Contains(script.String(), v) {
						t.Errorf("%s: no value %s of %s", shell, v, f.name)
					}
				}
			}
		}
	}
	if err := writeCompletion(new(strings.Builder), "powershell", app); err == nil {
		t.Error("there is a completion for powershell")
	}
}

// TestCompletionGoldens shows the scripts of a small command line, with text that
// needs quoting.
func TestCompletionGoldens(t *testing.T) {
	var small struct {
		Run struct {
			Color []string `enum:"red,green" help:"A [red] flag: it's quoted."`
			Input string   `type:"path" short:"i"`
			What  string   `arg:"" type:"existingfile" help:"A file."`
			Which string   `arg:"" complete:"scenarios"`
		} `cmd:"" help:"Run it."`
		Secret struct{} `cmd:"" hidden:"" help:"Not shown."`
	}
	parser, err := kong.New(&small, kong.Name("weir"))
	if err != nil {
		t.Fatal(err)
	}
	for shell, want := range map[string][]string{
		"bash": {
			"        /run) at=/run ;;\n",
			"    /run:--color)\n        COMPREPLY=($(compgen -W $'red\\ngreen' -- \"$cur\"))\n        return ;;\n",
			"    /run:--input)\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n        return ;;\n",
			"    '')\n        COMPREPLY=($(compgen -W $'run\\n--help' -- \"$cur\")) ;;\n",
			"    '/run')\n        COMPREPLY=($(compgen -W $'burst-edge\\nburst-loss\\n",
			"--help\\n--color\\n--input' -- \"$cur\"))\n        COMPREPLY+=($(compgen -f -- \"$cur\"))",
		},
		"zsh": {
			"            'run:Run it.'\n",
			"        run) _weir_run ;;\n",
			`        '*--color=[A \[red\] flag\: it'\''s quoted.]:color:(red green)'`,
			`        '(-i --input)'{-i,--input}'=[]:input:_files'`,
			"        ':what:_files'",
			"        ':which:{compadd -- burst-edge burst-loss burst-loss/single ",
			"; _files}'\n",
		},
		"fish": {
			`complete -c weir -n '__weir_at ""' -a run -d 'Run it.'` + "\n",
			`complete -c weir -n '__weir_at "/run"' -l color -x -a 'red green' -d 'A [red] flag: it\'s quoted.'` + "\n",
			`complete -c weir -n '__weir_at "/run"' -l input -s i -r -F -d ''` + "\n",
			`complete -c weir -n '__weir_at "/run"' -F` + "\n",
		},
	} {
		var script strings.Builder
		if err := writeCompletion(&script, shell, parser.Model); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(script.String(), part) {
				t.Errorf("%s: no %q in\n%s", shell, part, script.String())
			}
		}
		if strings.Contains(strings.ToLower(script.String()), "secret") {
			t.Errorf("%s completes a hidden command", shell)
		}
	}
}
