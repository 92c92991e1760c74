package main

import (
	"context"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for args, want := range map[string]struct {
		conforms bool
		out, err string // what they hold
	}{
		"--core":                        {true, "0 failed", ""},
		"--core --run ^wire/":           {true, "the core: 1", ""},
		"--core --run no-such":          {false, "the core: 0 traces", ""},
		"--list --run ^wire/mode-aes":   {true, "wire/mode-aes\n", ""},
		"--run (":                       {false, "", "--run"},
		"":                              {false, "", "--help tells the rest"},
		"--core --run ^key-vectors/":    {true, "the core: 0 traces and 44 keys, 0 failed", ""},
		"--none":                        {false, "", "unknown flag"},
		"-- /no/such/adapter":           {false, "", "cannot be started"},
		"--run no-such -- /no/such/ada": {false, "", "no case has a name that matches"},
	} {
		var out, errs strings.Builder
		conforms, err := run(context.Background(), strings.Fields(args), &out, &errs)
		if conforms != want.conforms || !strings.Contains(out.String(), want.out) {
			t.Errorf("%q: %v\n%s", args, conforms, out.String())
		}
		if want.err == "" && err != nil || want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
