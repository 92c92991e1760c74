package server

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
)

// However a tenants file is broken, no error repeats a piece of a key.
func TestBrokenTenantsFileKeepsItsSecrets(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7).Encode()
	whole := "tenants:\n  - key: " + key + "\n    name: shop\n  - keys: [\"" + key + "\", '" + key + "']\n    insecure_auth: true\n"
	pieces := strings.Split("* & ! | > % @ ` ' \" { } [ ] : # , - ? \n \t \\x \\u12 <<: ---\n ...\n \x00 \xff &a *a !a", " ")
	rng := rand.New(rand.NewPCG(1, 2))
	const tries = 10_000
	refused := 0
	for range tries {
		text := whole
		if rng.IntN(4) == 0 { // the key goes on as a field's name
			at := rng.IntN(len(key) - 12)
			text = "tenants:\n  - key: " + key[:at] + "\n    " + key[at:at+6+rng.IntN(7)] + ": x\n"
		}
		for range 1 + rng.IntN(4) {
			from := rng.IntN(len(text) + 1)
			to := from
			piece := ""
			switch rng.IntN(3) {
			case 0:
				piece = pieces[rng.IntN(len(pieces))]
			case 1:
				to = min(len(text), from+1+rng.IntN(3))
			default:
				to += rng.IntN(len(text) - from + 1)
			}
			text = text[:from] + piece + text[to:]
		}
		_, err := parseTenants([]byte(text), fileRules{})
		if err == nil {
			continue
		}
		refused++
		message := err.Error()
		if strings.ContainsAny(message, "\n\x00") {
			t.Fatalf("%q: the error is not one line: %q", text, message)
		}
		const piece = 6 // characters, 30 bits
		for i := len("rl-aes1"); i+piece <= len(key); i++ {
			if strings.Contains(message, key[i:i+piece]) {
				t.Fatalf("%q: the error repeats %q of the key: %s", text, key[i:i+piece], message)
			}
		}
	}
	if refused < tries/2 {
		t.Errorf("only %d of %d files are refused", refused, tries)
	}
}
