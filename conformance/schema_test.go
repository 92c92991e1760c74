package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas compiles what is in the directory schema, by name.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	files, err := filepath.Glob("schema/*.schema.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("file:///"+filepath.Base(file), value(t, b)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	compiled := map[string]*jsonschema.Schema{}
	for _, file := range files {
		s, err := c.Compile("file:///" + filepath.Base(file))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		compiled[strings.TrimSuffix(filepath.Base(file), ".schema.json")] = s
	}
	return compiled
}

// value is a JSON text as the validator takes it.
func value(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%.80s: %v", b, err)
	}
	return v
}

// TestSchemas holds every file of the data to the schema of its kind.
func TestSchemas(t *testing.T) {
	kinds := schemas(t)
	files := 0
	err := fs.WalkDir(os.DirFS("data"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind := strings.TrimSuffix(name, ".json")
		if path.Dir(name) == "traces" {
			kind = "traces"
		}
		s := kinds[kind]
		if s == nil {
			return fmt.Errorf("data/%s has no schema", name)
		}
		b, err := os.ReadFile(filepath.Join("data", filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		files++
		if err := s.Validate(value(t, b)); err != nil {
			t.Errorf("data/%s: %v", name, err)
		}
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestSchemasOfLines holds the lines that README.md shows to the schemas, and those of the package to
// both: what the schema takes the parser takes.
func TestSchemasOfLines(t *testing.T) {
	kinds := schemas(t)
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimSpace(line)
		var err error
		switch {
		case strings.HasPrefix(line, `{"cmd":`):
			var c Command
			if c, err = ParseCommand([]byte(line)); err == nil {
				seen[c.Cmd] = true
				err = kinds["commands"].Validate(value(t, []byte(line)))
			}
		case strings.HasPrefix(line, `{"event":`):
			var r Reply
			if r, err = ParseReply([]byte(line)); err == nil {
				seen[r.Event] = true
				err = kinds["replies"].Validate(value(t, []byte(line)))
			}
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, kind := range strings.Fields("configure parse_key submit report quit hello ready refused parsed decided failed reported") {
		if !seen[kind] {
			t.Errorf("README.md shows no %s", kind)
		}
	}
}

// TestSchemasRefuse breaks good data in one way each, as a schema alone is to see.
func TestSchemasRefuse(t *testing.T) {
	kinds := schemas(t)
	const trace = `[{"name":"g/n","about":"a","section":"docs/policy.md#rounds","auth":"any","layout":2,"margin_ns":1,
		"policy":{"unit_ns":1000000,"replays":0,"gap":"fixed:1","preference":"fixed:1","final":0,"final_preference":0,"completion_delivery":true},
		"servers":[{"name":"A","id":"18446744073709551615"}],"members":["A"],
		"events":[{"at_ns":1,"submit":{"id":"r"}},{"at_ns":1,"send":{"request":"r","to":"A","why":"first"}},
			{"at_ns":2,"answer":{"from":"A","of":"r","counts":"counted"}},{"at_ns":2,"decide":{"request":"r","granted":true,"by":"A"}}]}]`
	const policies = `[{"name":"n","policy":{"unit_ns":-1,"replays":0,"gap":"fixed:1","preference":"fixed:1","final":0,"final_preference":0,"completion_delivery":true},"fault":"unit"}]`
	const vectors = `[{"path":"apikey/testdata/keys.json","bytes":1,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}]`
	good := map[string]string{
		"traces": trace, "policies": policies, "vectors": vectors, "keys": goodKeys,
		"replies":  `{"event":"decided","id":"r","granted":true,"server":"5","guards":[{"latency_ms":7,"passed":true}],"later":1}`,
		"commands": `{"cmd":"report","id":"p","observations":[{"tracker":"t","ttl_ms":1,"max_samples":1,"min_samples":1,"latency_ms":1}]}`,
	}
	for kind, text := range good {
		if err := kinds[kind].Validate(value(t, []byte(text))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, tt := range []struct{ kind, old, broken string }{
		{"traces", `"name":"g/n"`, `"name":"n"`},
		{"traces", `"auth":"any"`, `"auth":"some"`},
		{"traces", `"layout":2`, `"layout":3`},
		{"traces", `"margin_ns":1,`, ``},
		{"traces", `"gap":"fixed:1",`, ``},
		{"traces", `"id":"18446744073709551615"`, `"id":18446744073709551615`},
		{"traces", `"members":["A"]`, `"members":null`},
		{"traces", `"at_ns":1,"submit"`, `"at_ns":-1,"submit"`},
		{"traces", `"submit":{"id":"r"}`, `"submit":{"id":"r"},"fail":{"request":"r","reason":"timeout"}`},
		{"traces", `,"submit":{"id":"r"}`, ``},
		{"traces", `"submit":{"id":"r"}`, `"submit":{"id":"a b"}`},
		{"traces", `"why":"first"`, `"why":"second"`},
		{"traces", `"send":{"request":"r",`, `"send":{`},
		{"traces", `"send":{"request":"r"`, `"send":{"request":"r","report":"r"`},
		{"traces", `"counts":"counted"`, `"counts":"seen"`},
		{"traces", `"counts":"counted"`, `"counts":"counted","damage":"bent"`},
		{"traces", `"counts":"counted"`, `"counts":"counted","what":1`},
		{"traces", `"granted":true`, `"granted":1`},
		{"policies", `"fault":"unit"`, `"fault":"units"`},
		{"policies", `"fault":"unit"`, `"fault":"unit","horizon_ns":1`},
		{"policies", `,"fault":"unit"`, `,"horizon_ns":1`},
		{"vectors", `"bytes":1`, `"bytes":0`},
		{"vectors", `"sha256":"0`, `"sha256":"`},
		{"keys", `"dedup_ttl_ms":10,`, ``},
		{"keys", `"rate_buckets":1`, `"rate_buckets":4294967296`},
		{"keys", `"auth":"none"`, `"auth":"some"`},
		{"keys", `"secret":""`, `"secret":"00"`},
		{"keys", `"fault":"empty"`, `"fault":"empty","legacy":true`},
		{"keys", `,"fault":"empty"`, ``},
		{"replies", `"event":"decided"`, `"event":"guessed"`},
		{"replies", `"id":"r",`, ``},
		{"replies", `"latency_ms":7`, `"latency_ms":-7`},
		{"commands", `"cmd":"report"`, `"cmd":"tell"`},
		{"commands", `"latency_ms":1`, `"latency":1`},
	} {
		broken := strings.Replace(good[tt.kind], tt.old, tt.broken, 1)
		if !json.Valid([]byte(broken)) || broken == good[tt.kind] {
			t.Fatalf("%s is not broken by %s", tt.kind, tt.broken)
		}
		if kinds[tt.kind].Validate(value(t, []byte(broken))) == nil {
			t.Errorf("%s: the schema takes %s", tt.kind, tt.broken)
		}
	}
}
