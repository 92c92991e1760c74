package apikey_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/apikey"
)

// secretBytes are what no output may hold in any notation. Letters show in a raw
// dump, and none of their groups of four, nor their hexadecimal forms, can be part
// of a time or a count.
var secretBytes = []byte("QZJWXqkvwjzy\x00\x01\x0e\x0f\xfe\xfd\xfc\xfbGKLMNPRSTUVY")

// Ways in which a key may sit in other values. Unexported fields matter most:
// fmt cannot call methods on them and prints what is inside.
type (
	exported   struct{ Key apikey.Key }
	unexported struct{ key apikey.Key }
	pointers   struct {
		Key *apikey.Key
		key *apikey.Key
	}
	embedded   struct{ apikey.Key }
	containers struct {
		List  []apikey.Key
		Array [1]apikey.Key
		Map   map[string]apikey.Key
		Any   any
		list  []apikey.Key
		array [1]apikey.Key
		m     map[string]apikey.Key
		any   any
	}
	deep struct {
		inner  unexported
		pinner *unexported
		Any    any
	}
)

// holders returns values that hold k, by a name.
func holders(k apikey.Key) map[string]any {
	pk := &k
	return map[string]any{
		"value":              k,
		"pointer":            pk,
		"pointer to pointer": &pk,
		"slice":              []apikey.Key{k},
		"slice of pointers":  []*apikey.Key{&k},
		"array":              [1]apikey.Key{k},
		"map":                map[string]apikey.Key{"key": k},
		"map of pointers":    map[string]*apikey.Key{"key": &k},
		"exported":           exported{k},
		"unexported":         unexported{k},
		"pointer to struct":  &unexported{k},
		"pointers":           pointers{&k, &k},
		"embedded":           embedded{k},
		"containers": containers{
			[]apikey.Key{k},
			[1]apikey.Key{k},
			map[string]apikey.Key{"key": k},
			k,
			[]apikey.Key{k},
			[1]apikey.Key{k},
			map[string]apikey.Key{"key": k},
			k,
		},
		"deep": deep{unexported{k}, &unexported{k}, []any{unexported{k}, k}},
	}
}

func TestFmtShowsNoSecret(t *testing.T) {
	flags := []string{"", "+", "#", " ", "0", "# ", "-40", "+.100"}
	verbs := "vTtbcdoOqxXUeEfFgGsp%wz"
	for _, k := range secretKeys(t) {
		for where, v := range holders(k) {
			for _, flag := range flags {
				for _, verb := range verbs {
					format := "%" + flag + string(verb)
					noSecret(t, k, where+" with "+format, fmt.Sprintf(format, v))
				}
			}
			noSecret(t, k, where+" with Sprint", fmt.Sprint(v))
			noSecret(t, k, where+" with Sprintln", fmt.Sprintln(v))
			noSecret(t, k, where+" in an error", fmt.Errorf("open %v: %w", v, fmt.Errorf("%+v", v)).Error())
		}
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%X", "%q", "%08b", "%g"} {
			if got := fmt.Sprintf(format, k); got != k.String() {
				t.Errorf("%s gives %q, want %q", format, got, k.String())
			}
			if got := fmt.Sprintf(format, &k); got != k.String() {
				t.Errorf("%s of a pointer gives %q, want %q", format, got, k.String())
			}
		}
	}
}

func TestEncodingsShowNoSecret(t *testing.T) {
	for _, k := range secretKeys(t) {
		for where, v := range holders(k) {
			b, err := json.Marshal(v)
			if err != nil {
				t.Errorf("json of %s: %v", where, err)
			}
			noSecret(t, k, where+" in JSON", string(b))

			b, err = yaml.Marshal(v)
			if err != nil {
				t.Errorf("yaml of %s: %v", where, err)
			}
			noSecret(t, k, where+" in YAML", string(b))

			for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
				"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
				"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			} {
				var out bytes.Buffer
				log := slog.New(handler(&out))
				log.Info("message", "key", v, slog.Group("group", "key", v))
				log.With("key", v).WithGroup("g").Info(fmt.Sprint(v), slog.Any("any", []any{v}))
				noSecret(t, k, where+" in a "+name+" log", out.String())
			}
		}
	}
}

// TestRedactedForm holds the exact texts, so that a key that printed nothing at
// all would be seen.
func TestRedactedForm(t *testing.T) {
	keys := secretKeys(t)
	keys = append(keys, apikey.Key{})
	want := []string{"rl-aes(key_id=7)", "rl-cookie(key_id=7)", "rl-aes(key_id=7, legacy)", "rl(no key)"}
	for i, k := range keys {
		text, err := k.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(exported{k})
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(map[string]apikey.Key{"key": k})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("", "key", k)
		for _, c := range []struct{ name, got, want string }{
			{"String", k.String(), want[i]},
			{"GoString", k.GoString(), want[i]},
			{"MarshalText", string(text), want[i]},
			{"JSON", string(asJSON), `{"Key":"` + want[i] + `"}`},
			{"YAML", string(asYAML), "key: " + want[i] + "\n"},
			{"LogValue", k.LogValue().String(), want[i]},
		} {
			if c.got != c.want {
				t.Errorf("%s = %q, want %q", c.name, c.got, c.want)
			}
		}
		if want := `"key":"` + want[i] + `"`; !strings.Contains(log.String(), want) {
			t.Errorf("a log line is %s, without %s", log.String(), want)
		}
	}
}

// TestNoSecretSees makes sure that the check of this file would find a secret.
func TestNoSecretSees(t *testing.T) {
	k := secretKeys(t)[0]
	for _, shown := range []string{
		fmt.Sprintf("%d", secretBytes), fmt.Sprintf("%x", secretBytes), fmt.Sprintf("%X", secretBytes), string(secretBytes),
		fmt.Sprintf("%q", secretBytes), fmt.Sprintf("%#v", secretBytes), fmt.Sprintf("% x", secretBytes), fmt.Sprintf("%o", secretBytes),
		fmt.Sprintf("%b", secretBytes), k.Encode(), strings.ToUpper(k.Encode()), base64.StdEncoding.EncodeToString(secretBytes),
		fmt.Sprintf("%v", [32]byte(secretBytes)), fmt.Sprintf("%v", struct{ s [32]byte }{[32]byte(secretBytes)}),
	} {
		if len(leaks(k, shown)) == 0 {
			t.Errorf("%q passes", shown)
		}
	}
}

// secretKeys returns one key of each kind that has a secret.
func secretKeys(t *testing.T) []apikey.Key {
	t.Helper()
	var keys []apikey.Key
	for _, issue := range []func() (apikey.Key, error){
		func() (apikey.Key, error) {
			return apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), bytes.NewReader(secretBytes))
		},
		func() (apikey.Key, error) {
			return apikey.New(apikey.AuthCookie, 7, apikey.DefaultQuotas(), bytes.NewReader(secretBytes))
		},
		func() (apikey.Key, error) {
			return apikey.NewLegacy(apikey.AuthAES, 7, apikey.DefaultQuotas(), bytes.NewReader(secretBytes))
		},
	} {
		k, err := issue()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

func noSecret(t *testing.T, k apikey.Key, where, out string) {
	t.Helper()
	if found := leaks(k, out); len(found) > 0 {
		t.Fatalf("%s shows %q: %s", where, found, out)
	}
}

// leaks returns what out shows of the secret: an aligned group of four of its
// bytes in one of the notations that printers use, or a good part of the key's
// text.
func leaks(k apikey.Key, out string) []string {
	lower := strings.ToLower(out)
	var found []string
	for _, n := range needles(k.Encode()) {
		if strings.Contains(lower, n) {
			found = append(found, n)
		}
	}
	return found
}

// needles returns what must not be in an output in lower case.
var needles = memo(func(text string) []string {
	var all []string
	// The prefix is no secret. A part of twelve characters holds seven bytes.
	for i := len("rl-cookie1"); i+12 <= len(text); i += 3 {
		all = append(all, text[i:i+12])
	}
	for group := range slices.Chunk(secretBytes, 4) {
		all = append(all, strings.ToLower(string(group)), hex.EncodeToString(group))
		for _, verb := range []string{"%d", "%#v", "%02x", "%#02x", "%o", "%#o", "%O", "%b", "%08b", "%q", "%c", "%U"} {
			for _, sep := range []string{" ", ", "} {
				parts := make([]string, len(group))
				for i, b := range group {
					parts[i] = fmt.Sprintf(verb, b)
				}
				all = append(all, strings.ToLower(strings.Join(parts, sep)))
			}
		}
	}
	for i := 0; i+6 <= len(secretBytes); i += 3 {
		all = append(all, strings.ToLower(base64.StdEncoding.EncodeToString(secretBytes[i:i+6])))
	}
	return all
})

func memo(f func(string) []string) func(string) []string {
	known := map[string][]string{}
	return func(text string) []string {
		if _, ok := known[text]; !ok {
			known[text] = f(text)
		}
		return known[text]
	}
}
