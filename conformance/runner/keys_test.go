package runner

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/conformance"
)

// TestCheckKeyFindsWhatIsWrong changes what the data says of keys, one thing at a time.
func TestCheckKeyFindsWhatIsWrong(t *testing.T) {
	cases, err := conformance.Keys()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		good := &cases[i]
		if err := CheckKey(good); err != nil {
			t.Errorf("%s: %v", good.Name, err)
		}
		if good.Fields == nil {
			taken := *good
			taken.Fields = &conformance.KeyFields{Auth: "aes"}
			if CheckKey(&taken) == nil {
				t.Errorf("%s: is taken", good.Name)
			}
			continue
		}
		for what, change := range map[string]func(*conformance.KeyCase){
			"refused": func(c *conformance.KeyCase) { c.Fields = nil },
			"format":  func(c *conformance.KeyCase) { c.Legacy = !c.Legacy },
			"ID":      func(c *conformance.KeyCase) { c.Fields.ID += "0" },
			"quota":   func(c *conformance.KeyCase) { c.Fields.Quotas["rate_window_ms"]++ },
		} {
			bad, fields := *good, *good.Fields
			fields.Quotas = maps.Clone(fields.Quotas)
			bad.Fields = &fields
			change(&bad)
			if CheckKey(&bad) == nil {
				t.Errorf("%s: another %s is not seen", good.Name, what)
			}
		}
	}
}

// TestKeyVectorsAreAsked plays the key vectors with a client that gets the ID wrong, and with one that
// says nothing of parse_key in its hello.
func TestKeyVectorsAreAsked(t *testing.T) {
	const hello = `{"event":"hello","name":"k","auth":["cookie"],"layouts":[2]`
	parsed := func(id string) string {
		return `{"event":"parsed","key":{"auth":"cookie","id":"` + id + `","secret":"` + strings.Repeat("01", 32) + `","quotas":{"dedup_ttl_ms":300}}}` + "\n"
	}
	for name, tt := range map[string]struct {
		match, says string
		want        Verdict
		find        string
	}{
		"right":         {"^key-vectors/v1-cookie$", hello + `,"has":["parse_key"]}` + "\n" + parsed("1001"), Passed, ""},
		"wrong ID":      {"^key-vectors/v1-cookie$", hello + `,"has":["parse_key"]}` + "\n" + parsed("1002"), Failed, `ID "1002"`},
		"lacks it":      {"^key-vectors/v1-cookie$", hello + "}\n", Skipped, ""},
		"another mode":  {"^key-vectors/v1-aes$", hello + `,"has":["parse_key"]}` + "\n", Skipped, ""},
		"legacy taken":  {"^key-vectors/legacy-cookie$", hello + `,"has":["parse_key"]}` + "\n" + parsed("1001") + parsed("1001"), Failed, `"parsed"`},
		"legacy":        {"^key-vectors/legacy-cookie$", hello + `,"has":["parse_key"]}` + "\n" + parsed("1001") + `{"event":"refused"}` + "\n", Passed, ""},
		"takes a wrong": {"^key-vectors/format-version-2$", hello + "}\n" + `{"event":"ready"}` + "\n", Failed, `"ready"`},
		"refuses it":    {"^key-vectors/format-version-2$", hello + "}\n" + `{"event":"refused","field":"key"}` + "\n", Passed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var result Result
				_, err := Run(t.Context(), Config{
					Start: func(context.Context) (Client, error) { return &spoiled{Reader: strings.NewReader(tt.says)}, nil },
					Stack: memory(), Match: regexp.MustCompile(tt.match), Attempts: 1, Done: func(r Result) { result = r },
				})
				if err != nil {
					t.Fatal(err)
				}
				if result.Verdict != tt.want || tt.find != "" && !strings.Contains(result.Findings[0].Got, tt.find) {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}
