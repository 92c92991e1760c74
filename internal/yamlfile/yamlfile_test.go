package yamlfile

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/storm"
)

type config struct {
	name  string
	on    bool
	items []string
}

func decode(text string) (config, error) {
	var c config
	root, err := Parse([]byte(text))
	if err != nil {
		return c, err
	}
	err = Mapping(root, "the file", []Field{
		{"name", func(n *yaml.Node) (err error) { c.name, err = Text(n, "name"); return err }},
		{"on", func(n *yaml.Node) (err error) { c.on, err = Bool(n, "on"); return err }},
		{"items", func(n *yaml.Node) error {
			return Sequence(n, "items", func(n *yaml.Node) error {
				s, err := Text(n, "items")
				c.items = append(c.items, s)
				return err
			})
		}},
	})
	return c, err
}

func TestDecode(t *testing.T) {
	c, err := decode("name: &n 007\non: true\nitems: [a, *n, 'null', 1e3]\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.name != "007" || !c.on || strings.Join(c.items, " ") != "a 007 null 1e3" {
		t.Errorf("got %+v", c)
	}
}

func TestFaults(t *testing.T) {
	const secret = "rl-aes1secret"
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty, or more than one YAML document"},
		{"# nothing\n", "the file is empty, or more than one YAML document"},
		{"a: 1\n---\nb: 1\n", "the file is empty, or more than one YAML document"},
		{"name: [" + secret, "2:1: not YAML: did not find expected ',' or ']'"},
		{"name: \"" + secret, "1:21: not YAML: found unexpected end of stream"},
		{"name: *" + secret, "1:7: not YAML: an alias has no anchor"},
		{"name: a\nitems:\n\t- " + secret, "3:1: not YAML: found character that cannot start any token"},
		{"name: a\n# é\xff", "2:5: not YAML: invalid leading UTF-8 octet (value: 255)"},
		{"name: a\n\x00", "2:1: not YAML: control characters are not allowed (value: 0)"},
		{secret, "1:1: the file must be a mapping with the fields name, on, items"},
		{"[]", "1:1: the file must be a mapping with the fields name, on, items"},
		{"name: a\ncolor: red", "2:1: the file has no field of this name; it has name, on, items"},
		{secret + ": a", "1:1: the file has no field of this name; it has name, on, items"},
		{"secretsecretsecretsecrets: a", "1:1: the file has no field of this name; it has name, on, items"},
		{"? [" + secret + "]\n: a", "1:3: the file has no field of this name; it has name, on, items"},
		{"name: a\nname: b", "2:1: the field `name` is there twice"},
		{"name: [" + secret + "]", "1:7: `name` must be a text"},
		{"name:", "1:6: `name` must be a text"},
		{"name: ~", "1:7: `name` must be a text"},
		{"on: yes", "1:5: `on` must be true or false"},
		{"on: " + secret, "1:5: `on` must be true or false"},
		{"items: " + secret, "1:8: `items` must be a list"},
		{"items: [a, {}]", "1:12: `items` must be a text"},
	} {
		_, err := decode(c.text)
		if err == nil {
			t.Errorf("%q is taken", c.text)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%q\ngives %v\nwant  %s", c.text, err, c.want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is repeated: %v", c.text, err)
		}
	}
}

func TestInFile(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&Fault{3, 5, "bad"}, "f.yaml:3:5: bad"},
		{&Fault{Text: "empty"}, "f.yaml: empty"},
		{os.ErrNotExist, "f.yaml: file does not exist"},
	} {
		if got := InFile("f.yaml", c.err); got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Whatever the library says about broken YAML, no part of a secret is in it.
func parseTarget() *storm.Target {
	const secret = "rlaes1qqsecret"
	target := storm.New("FuzzParse", func(t testing.TB, frame string) {
		text := strings.ReplaceAll(frame, "secret", secret) + secret
		root, err := Parse([]byte(text))
		if err == nil {
			err = Mapping(root, "the file", nil)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows what is in the file: %v", text, err)
		}
	})
	for _, s := range []string{"a: 1", "- *secret", "!secret a", "\"\\x", "%YAML 9\n---", "a: |9", "<<: *a", "{a: [b", "? a", "&a"} {
		target.Add(s)
	}
	return target
}

func FuzzParse(f *testing.F)      { parseTarget().Fuzz(f) }
func TestStormParse(t *testing.T) { parseTarget().Storm(t) }
