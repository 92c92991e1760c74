package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoad holds how scenarios are found and named, and that a file says nothing of what is not
// beside it.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"shop.yaml":     whole + "network: {delay: file rtt.txt}\nvariants: {far: {network: {delay: 9ms}}}\n",
		"rtt.txt":       "1ms 3\n",
		"named.yml":     "name: other\n" + whole,
		"wrong.yaml":    "length: 5s\npolcy: default\n",
		"out.yaml":      whole + "network: {delay: file ../rtt.txt}\n",
		"sub/in.yaml":   whole + "network: {delay: file rtt.txt}\n",
		"plain":         whole,
		"healthy":       whole,
		"sub/blank.txt": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ find, name, wrong string }{
		{"shop.yaml", "shop", ""},
		{"./shop.yaml", "shop", ""},
		{filepath.Join(dir, "shop.yaml"), "shop", ""},
		{"shop.yaml/far", "shop/far", ""},
		{"shop.yaml/near", "", `scenario: shop has no variant "near"; it has far`},
		{"named.yml", "other", ""},
		{"plain", "plain", ""},
		{"./healthy", "healthy", ""},
		{"overload/min-off", "overload/min-off", ""},
		{"overload/mini-off", "", `scenario: overload has no variant "mini-off"; it has p50-off, min, `},
		{"heathy", "", `scenario: the library has no "heathy"; did you mean healthy?`},
		{"xyzzy-plugh", "", `scenario: the library has no "xyzzy-plugh"; it has burst-edge, burst-loss, `},
		{"wrong.yaml", "", "scenario: wrong.yaml:2:1: the file has no field `polcy`; did you mean `policy`?"},
		{"out.yaml", "", "scenario: out.yaml:8:18: `delay`: file ../rtt.txt cannot be read: invalid argument"},
		{"sub/in.yaml", "", "scenario: sub/in.yaml:8:18: `delay`: file rtt.txt cannot be read: no such file or directory"},
		{"none.yaml", "", "scenario: none.yaml: no such file or directory"},
		{"none.yaml/far", "", "scenario: none.yaml/far: no such file or directory"},
	} {
		s, err := Find(c.find)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.find, err)
		case c.wrong != "" && (err == nil || !strings.HasPrefix(filepath.ToSlash(err.Error()), c.wrong)):
			t.Errorf("%s: %v, want %s", c.find, err, c.wrong)
		case c.wrong == "" && s.Name != c.name:
			t.Errorf("%s is named %s", c.find, s.Name)
		}
	}
	if s, err := Find("healthy"); err != nil || s.Servers[0].Name != "A" || len(s.Servers) != 2 {
		t.Errorf("a file of this name hides the library's: %+v, %v", s, err)
	}
}
