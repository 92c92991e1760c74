package server

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
)

// fileKeys are the keys that the texts of tenants files below name as {aes7} and so on.
func fileKeys(t *testing.T) *strings.Replacer {
	t.Helper()
	legacy, err := apikey.NewLegacy(apikey.AuthAES, 7, apikey.DefaultQuotas(), entropy(90))
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), entropy(91))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"{aes7}", newKey(t, apikey.AuthAES, 7).Encode(),
		"{aes7b}", rotated.Encode(),
		"{legacy7}", legacy.Encode(),
		"{cookie7}", newKey(t, apikey.AuthCookie, 7).Encode(),
		"{aes8}", newKey(t, apikey.AuthAES, 8).Encode(),
		"{cookie9}", newKey(t, apikey.AuthCookie, 9).Encode(),
		"{none10}", newKey(t, apikey.AuthNone, 10).Encode(),
	)
}

// show describes tenants in one line each.
func show(tenants []Tenant) string {
	var b strings.Builder
	for _, t := range tenants {
		fmt.Fprintf(&b, "%s %v %v insecure=%v", t.Name, t.Keys, t.Estimator, t.InsecureAuth)
		if t.NoPacing {
			b.WriteString(" pacing=off")
		}
		if t.Shadow {
			b.WriteString(" mode=shadow")
		}
		if t.MaxRate > 0 {
			fmt.Fprintf(&b, " max_rate=%d", t.MaxRate)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTenantsFile(t *testing.T) {
	keys := fileKeys(t)
	for _, c := range []struct {
		name, text string
		rules      fileRules
		want       string
	}{
		{"one", "tenants: [{key: {aes7}, name: shop}]", fileRules{}, "shop [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"no name", "tenants: [{key: {aes7}}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"none", "tenants: []\n", fileRules{}, ""},
		{"pacing off", "tenants: [{key: {aes7}, pacing: off}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false pacing=off\n"},
		{"pacing false", "tenants: [{key: {aes7}, pacing: false}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false pacing=off\n"},
		{"pacing on", "tenants: [{key: {aes7}, pacing: on}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"shadow", "tenants: [{key: {aes7}, mode: shadow}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false mode=shadow\n"},
		{"enforce", "tenants: [{key: {aes7}, mode: enforce}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"max_rate", "tenants: [{key: {aes7}, max_rate: 1000000000}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false max_rate=1000000000\n"},
		{
			"all fields", "tenants:\n  - keys:\n      - {aes7}\n      - {aes7b}\n    name: shop\n    estimator: p99\n    insecure_auth: true\n    legacy_keys: false\n",
			fileRules{},
			"shop [rl-aes(key_id=7) rl-aes(key_id=7)] p99 insecure=true\n",
		},
		{
			"the file's default estimator", "tenants: [{key: {aes7}}, {key: {aes8}, estimator: min}]",
			fileRules{estimator: limiter.P90},
			"7 [rl-aes(key_id=7)] p90 insecure=false\n8 [rl-aes(key_id=8)] min insecure=false\n",
		},
		{"legacy by field", "tenants: [{key: {legacy7}, legacy_keys: true}]", fileRules{}, "7 [rl-aes(key_id=7, legacy)] p50 insecure=false\n"},
		{"legacy by rule", "tenants: [{key: {legacy7}}]", fileRules{legacyKeys: true}, "7 [rl-aes(key_id=7, legacy)] p50 insecure=false\n"},
		{"rotation from legacy", "tenants: [{keys: [{aes7}, {legacy7}], legacy_keys: true}]", fileRules{}, "7 [rl-aes(key_id=7) rl-aes(key_id=7, legacy)] p50 insecure=false\n"},
		{"upper case key", "tenants: [{key: " + strings.ToUpper(keys.Replace("{aes7}")) + "}]", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"a block scalar", "tenants:\n- key: |\n    {aes7}\n", fileRules{}, "7 [rl-aes(key_id=7)] p50 insecure=false\n"},
		{"anchors", "tenants: [{key: &k {aes7}, name: &n shop}, {key: {aes8}, estimator: p90}]", fileRules{}, "shop [rl-aes(key_id=7)] p50 insecure=false\n8 [rl-aes(key_id=8)] p90 insecure=false\n"},
		{"insecure on loopback", "tenants: [{key: {cookie9}}, {key: {none10}}]", fileRules{}, "9 [rl-cookie(key_id=9)] p50 insecure=false\n10 [rl-none(key_id=10)] p50 insecure=false\n"},
		{"insecure exposed, allowed", "tenants: [{key: {none10}, insecure_auth: true}]", fileRules{exposed: netip.MustParseAddrPort("0.0.0.0:1")}, "10 [rl-none(key_id=10)] p50 insecure=true\n"},
		{"a number for a name", "tenants: [{key: {aes7}, name: 007}]", fileRules{}, "007 [rl-aes(key_id=7)] p50 insecure=false\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseTenants([]byte(keys.Replace(c.text)), c.rules)
			if err != nil {
				t.Fatal(err)
			}
			if show(got) != c.want {
				t.Errorf("got\n%swant\n%s", show(got), c.want)
			}
		})
	}
}

func TestTenantsFileErrors(t *testing.T) {
	keys := fileKeys(t)
	exposed := fileRules{exposed: netip.MustParseAddrPort("192.0.2.7:29292")}
	for _, c := range []struct {
		name, text string
		rules      fileRules
		want       string
	}{
		{"empty", "", fileRules{}, "the file is empty, or more than one YAML document"},
		{"two documents", "tenants: []\n---\ntenants: []\n", fileRules{}, "the file is empty, or more than one YAML document"},
		{"only null", "---\n", fileRules{}, "2:1: the file must be a mapping with the fields tenants"},
		{"a bare key", "{aes7}\n", fileRules{}, "1:1: the file must be a mapping with the fields tenants"},
		{"no tenants", "{}\n", fileRules{}, "1:1: there is no field `tenants`; write `tenants: []` for none"},
		{"bracket", "tenants: [{key: {aes7}, name: shop]", fileRules{}, "1:114: not YAML: did not find expected ',' or '}'"},
		{"tab", "tenants:\n\t- key: {aes7}\n", fileRules{}, "2:1: not YAML: found character that cannot start any token"},
		{"bad UTF-8", "tenants: []\n# \xff\n", fileRules{}, "2:3: not YAML: invalid leading UTF-8 octet (value: 255)"},
		{"alias of nothing", "tenants:\n  - key: *{aes7}\n", fileRules{}, "2:10: not YAML: an alias has no anchor"},
		{"unknown field", "tenants: []\nmode: shadow\n", fileRules{}, "2:1: the file has no field of this name; it has tenants"},
		{"unknown tenant field", "tenants:\n  - key: {aes7}\n    max_rates: 5\n", fileRules{}, "3:5: a tenant has no field of this name; it has key, keys, name, estimator, pacing, mode, max_rate, insecure_auth, legacy_keys"},
		{"a key for a field", "tenants:\n  - {{aes7}: x}\n", fileRules{}, "2:6: a tenant has no field of this name; it has key, keys, name, estimator, pacing, mode, max_rate, insecure_auth, legacy_keys"},
		{"pacing by half", "tenants:\n  - key: {aes7}\n    pacing: half\n", fileRules{}, "3:13: pacing must be on or off"},
		{"mode", "tenants:\n  - key: {aes7}\n    mode: Shadow\n", fileRules{}, "3:11: mode must be enforce or shadow"},
		{"no mode", "tenants:\n  - key: {aes7}\n    mode:\n", fileRules{}, "3:10: mode must be enforce or shadow"},
		{"max_rate of 0", "tenants:\n  - key: {aes7}\n    max_rate: 0\n", fileRules{}, "3:15: max_rate must be a number of datagrams a second from 1 to 1000000000; leave it out for no bound"},
		{"max_rate too high", "tenants:\n  - key: {aes7}\n    max_rate: 1000000001\n", fileRules{}, "3:15: max_rate must be "},
		{"max_rate with a unit", "tenants:\n  - key: {aes7}\n    max_rate: 5k\n", fileRules{}, "3:15: max_rate must be "},
		{"max_rate a list", "tenants:\n  - key: {aes7}\n    max_rate: [5]\n", fileRules{}, "3:15: `max_rate` must be a text"},
		{"field twice", "tenants:\n  - key: {aes7}\n    name: a\n    name: b\n", fileRules{}, "4:5: the field `name` is there twice"},
		{"tenants no list", "tenants: {key: {aes7}}\n", fileRules{}, "1:10: `tenants` must be a list"},
		{"tenant no mapping", "tenants:\n  - {aes7}\n", fileRules{}, "2:5: a tenant must be a mapping with the fields key, keys, name, estimator, pacing, mode, max_rate, insecure_auth, legacy_keys"},
		{"no key", "tenants:\n  - name: shop\n", fileRules{}, "2:5: the tenant has no key; give it `key`, or `keys` with the newest first"},
		{"no keys", "tenants:\n  - keys: []\n", fileRules{}, "2:5: the tenant has no key; give it `key`, or `keys` with the newest first"},
		{"key and keys", "tenants:\n  - keys: [{aes7}]\n    key: {aes7b}\n", fileRules{}, "2:5: the tenant has both `key` and `keys`; name all in `keys`, newest first"},
		{"null key", "tenants:\n  - key:\n", fileRules{}, "2:9: `key` must be a text"},
		{"list for a key", "tenants:\n  - key: [{aes7}]\n", fileRules{}, "2:10: `key` must be a text"},
		{"one key for keys", "tenants:\n  - keys: {aes7}\n", fileRules{}, "2:11: `keys` must be a list"},
		{"no key at all", "tenants:\n  - key: hello\n", fileRules{}, "2:10: invalid key: "},
		{"a key cut short", "tenants:\n  - key: rl-aes1qqqqqqqq\n", fileRules{}, "2:10: invalid key: "},
		{"legacy", "tenants:\n  - key: {legacy7}\n", fileRules{}, "2:10: the key rl-aes(key_id=7, legacy) has the legacy format; to accept it, set legacy_keys: true on this tenant or start with --legacy-keys"},
		{"legacy by rule, but not here", "tenants:\n  - key: {legacy7}\n    legacy_keys: false\n", fileRules{legacyKeys: true}, "2:10: the key rl-aes(key_id=7, legacy) has the legacy format; "},
		{"bool", "tenants:\n  - key: {aes7}\n    insecure_auth: yes please\n", fileRules{}, "3:20: `insecure_auth` must be true or false"},
		{"estimator", "tenants:\n  - key: {aes7}\n    estimator: p95\n", fileRules{}, "3:16: the estimator is none of p50, min, p90, p99 and mean"},
		{"name too long", "tenants:\n  - key: {aes7}\n    name: " + strings.Repeat("x", 65) + "\n", fileRules{}, "2:5: the name has 65 bytes, more than 64"},
		{"name with a bell", "tenants:\n  - key: {aes7}\n    name: \"a\\a\"\n", fileRules{}, "2:5: the name holds characters that do not print"},
		{"name twice", "tenants:\n  - {key: {aes7}, name: a}\n  - {key: {aes8}, name: a}\n", fileRules{}, `3:5: tenant 1 has the name "a" too; metrics could not tell them apart`},
		{"a name that is another's key ID", "tenants:\n  - {key: {aes7}, name: 8}\n  - {key: {aes8}}\n", fileRules{}, `3:5: tenant 1 has the name "8" too; metrics could not tell them apart`},
		{"key ID twice", "tenants:\n  - {key: {aes7}, name: a}\n  - {key: {aes7b}, name: b}\n", fileRules{}, "3:11: tenant 1 (a) has a key with the key ID 7 too; a key ID belongs to one tenant: put keys that replace each other under one tenant's `keys`, or issue one with another ID"},
		{"key ID twice, both formats", "tenants:\n  - {key: {aes7}, name: a}\n  - {key: {legacy7}, name: b, legacy_keys: true}\n", fileRules{}, "3:11: tenant 1 (a) has a key with the key ID 7 too; "},
		{"two IDs in one tenant", "tenants:\n  - keys: [{aes7}, {aes8}]\n", fileRules{}, "2:99: its key ID is 8, but that of the tenant's first key is 7; keys that replace each other share their ID"},
		{"the same key twice", "tenants:\n  - keys: [{aes7}, {aes7}]\n", fileRules{}, "2:99: the same key is there twice"},
		{"too many keys", "tenants:\n  - keys: [{aes7}, {aes7}, {aes7}, {aes7}, {aes7}]\n", fileRules{}, "2:5: there are 5 keys; a tenant has 1 to 4"},
		{"cookie exposed", "tenants:\n  - key: {cookie9}\n", exposed, "2:10: a key in cookie mode can be forged by whoever sees one datagram, and 192.0.2.7:29292 is open to other machines; use an aes key, listen on a loopback address, or set insecure_auth: true on this tenant"},
		{"none exposed", "tenants:\n  - {key: {aes7}}\n  - {key: {none10}}\n", exposed, "3:11: a key in none mode can be forged by whoever reaches the port, and 192.0.2.7:29292 is open to other machines; "},
		{"an old key exposed", "tenants:\n  - keys: [{aes7}, {cookie7}]\n", exposed, "2:99: a key in cookie mode can be forged by "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseTenants([]byte(keys.Replace(c.text)), c.rules)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is\n%v\nand does not begin with\n%s", err, c.want)
			}
			if strings.Contains(strings.ToLower(err.Error()), "rl-aes1") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error shows a key or has several lines: %v", err)
			}
		})
	}
}

func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tenants.yaml")
	writeFile(t, path, "tenants: []")
	if data, err := readSecretFile(path); err != nil || string(data) != "tenants: []" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := readSecretFile(filepath.Join(dir, "absent.yaml")); err == nil || err.Error() != "no such file or directory" {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := readSecretFile(dir); err == nil || err.Error() != "it is not a regular file" {
		t.Errorf("a directory: %v", err)
	}
	long, err := os.OpenFile(filepath.Join(dir, "long.yaml"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if err := long.Truncate(maxSecretFile + 1); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecretFile(long.Name()); err == nil || !strings.Contains(err.Error(), "it is longer than") {
		t.Errorf("a long file: %v", err)
	}
}

func TestSecretFileMode(t *testing.T) {
	refused := []os.FileMode{0o604, 0o644, 0o602, 0o666}
	accepted := []os.FileMode{0o600, 0o400, 0o640, 0o660, 0o601}
	if runtime.GOOS == "windows" { // keeps no such bits
		refused, accepted = nil, slices.Concat(refused, accepted)
	}
	path := tempFile(t, "tenants: []")
	for _, mode := range accepted {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readSecretFile(path); err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	for _, mode := range refused {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("its mode %04o lets every user of this machine at what is in it; run: chmod o-rwx %s", mode, path)
		if _, err := readSecretFile(path); err == nil || err.Error() != want {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}
