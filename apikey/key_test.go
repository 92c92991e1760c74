package apikey_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/storm"
)

func TestAuthNames(t *testing.T) {
	for _, a := range []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES} {
		if back, err := apikey.ParseAuth(a.String()); err != nil || back != a {
			t.Errorf("ParseAuth(%q) = %v, %v", a, back, err)
		}
	}
	for _, bad := range []string{"", "AES", "aes ", "rl-aes", "Auth(0)", "gcm"} {
		if a, err := apikey.ParseAuth(bad); err == nil || a != 0 {
			t.Errorf("ParseAuth(%q) = %v, %v; want an error", bad, a, err)
		}
	}
	if got := apikey.Auth(0).String(); got != "Auth(0)" {
		t.Errorf("the zero Auth is written %q", got)
	}
}

func TestNewReadsItsSecret(t *testing.T) {
	entropy := bytes.Repeat([]byte{0xab}, 31)
	entropy = append(entropy, 0xcd)
	for _, issue := range []func(apikey.Auth, uint64, apikey.Quotas, io.Reader) (apikey.Key, error){apikey.New, apikey.NewLegacy} {
		for _, a := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
			k, err := issue(a, 7, apikey.DefaultQuotas(), bytes.NewReader(entropy))
			if err != nil {
				t.Fatal(err)
			}
			if got := k.Secret(); !bytes.Equal(got[:], entropy) {
				t.Errorf("%v: the secret is not what entropy gave", k)
			}
			_, err = issue(a, 7, apikey.DefaultQuotas(), bytes.NewReader(entropy[:31]))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v: short entropy gives error %v", a, err)
			}
		}
	}
	k, err := apikey.New(apikey.AuthNone, 7, apikey.DefaultQuotas(), nil)
	if err != nil || k.Secret() != [32]byte{} {
		t.Errorf("a key of mode none = %v, %v", k, err)
	}
}

func TestNewRefuses(t *testing.T) {
	def := apikey.DefaultQuotas()
	odd := def
	odd.RateBuckets = 100
	window := def
	window.RateWindow = 1024
	for _, c := range []struct {
		name   string
		issue  func(apikey.Auth, uint64, apikey.Quotas, io.Reader) (apikey.Key, error)
		auth   apikey.Auth
		quotas apikey.Quotas
		say    string
	}{
		{"no mode", apikey.New, 0, def, "Auth(0)"},
		{"unknown mode", apikey.New, 4, def, "Auth(4)"},
		{"quota", apikey.New, apikey.AuthAES, odd, "RateBuckets"},
		{"legacy none", apikey.NewLegacy, apikey.AuthNone, def, "legacy"},
		{"legacy without mode", apikey.NewLegacy, 0, def, "legacy"},
		{"legacy window", apikey.NewLegacy, apikey.AuthAES, window, "RateWindow"},
	} {
		k, err := c.issue(c.auth, 7, c.quotas, bytes.NewReader(make([]byte, 32)))
		if err == nil || !strings.Contains(err.Error(), c.say) || !k.IsZero() {
			t.Errorf("%s: %v, %v; want an error that says %q", c.name, k, err, c.say)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		text := k.Encode()
		if text != strings.ToLower(text) {
			t.Errorf("the text of %v is not in lower case", k)
		}
		for _, s := range []string{text, strings.ToUpper(text)} {
			back, err := apikey.ParseAny(s)
			if err != nil || !back.Equal(k) || back.Encode() != text {
				t.Errorf("%v came back as %v, %v", k, back, err)
			}
			_, err = apikey.Parse(s)
			if errors.Is(err, apikey.ErrLegacy) != k.Legacy() {
				t.Errorf("Parse of %v: error %v", k, err)
			}
		}
	})
}

func TestEqual(t *testing.T) {
	secret := bytes.Repeat([]byte{1}, 32)
	issue := func(a apikey.Auth, id uint64, change func(*apikey.Quotas), secret []byte) apikey.Key {
		q := apikey.DefaultQuotas()
		if change != nil {
			change(&q)
		}
		k, err := apikey.New(a, id, q, bytes.NewReader(secret))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := issue(apikey.AuthAES, 7, nil, secret)
	if !k.Equal(issue(apikey.AuthAES, 7, nil, secret)) {
		t.Error("equal keys are not equal")
	}
	if !(apikey.Key{}).Equal(apikey.Key{}) {
		t.Error("the zero Key is not equal to itself")
	}
	legacy, err := apikey.NewLegacy(apikey.AuthAES, 7, apikey.DefaultQuotas(), bytes.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.Repeat([]byte{1}, 32)
	last[31] ^= 0x80
	for name, other := range map[string]apikey.Key{
		"mode":   issue(apikey.AuthCookie, 7, nil, secret),
		"id":     issue(apikey.AuthAES, 8, nil, secret),
		"quotas": issue(apikey.AuthAES, 7, func(q *apikey.Quotas) { q.DedupTTL = 310 }, secret),
		"secret": issue(apikey.AuthAES, 7, nil, last),
		"format": legacy,
		"zero":   {},
	} {
		if k.Equal(other) || other.Equal(k) {
			t.Errorf("keys that differ in %s are equal", name)
		}
	}
}

func TestZeroKey(t *testing.T) {
	var k apikey.Key
	if !k.IsZero() || k.Encode() != "" || k.Secret() != [32]byte{} || k.Auth() != 0 {
		t.Errorf("the zero Key: %v, text %q", k, k.Encode())
	}
}

func TestTooLong(t *testing.T) {
	for _, s := range []string{strings.Repeat("q", 129), "rl-aes1" + strings.Repeat("q", 1<<20)} {
		if _, err := apikey.Parse(s); !errors.Is(err, apikey.ErrInvalid) || !strings.Contains(err.Error(), "characters") {
			t.Errorf("a string of %d characters: error %v", len(s), err)
		}
	}
}

func parseTarget(tb testing.TB) *storm.Target {
	target := storm.New("FuzzParse", func(t testing.TB, s string) {
		k, err := apikey.ParseAny(s)
		strict, strictErr := apikey.Parse(s)
		if err != nil {
			if !k.IsZero() || !errors.Is(err, apikey.ErrInvalid) || strictErr == nil {
				t.Fatalf("ParseAny(%q) = %v, %v; Parse: %v", s, k, err, strictErr)
			}
			// Words of the message aside, nothing of the input may come back.
			if len(s) > 40 && strings.Contains(err.Error(), s) {
				t.Fatalf("the error repeats its input: %v", err)
			}
			return
		}
		if k.Encode() != strings.ToLower(s) {
			t.Fatalf("ParseAny(%q) is written %q", s, k.Encode())
		}
		if k.Legacy() != errors.Is(strictErr, apikey.ErrLegacy) || !k.Legacy() && !strict.Equal(k) {
			t.Fatalf("Parse(%q) = %v, %v", s, strict, strictErr)
		}
	})
	v := loadVectors(tb)
	for _, k := range v.Keys {
		target.Add(k.Text)
	}
	for _, r := range v.Refused {
		target.Add(r.Text)
	}
	return target
}

func FuzzParse(f *testing.F)      { parseTarget(f).Fuzz(f) }
func TestStormParse(t *testing.T) { parseTarget(t).Storm(t) }

// drawKey draws a key of any kind.
func drawKey(t *rapid.T) apikey.Key {
	a := rapid.SampledFrom([]apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES}).Draw(t, "auth")
	id := rapid.Uint64().Draw(t, "id")
	secret := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "secret")
	if a != apikey.AuthNone && rapid.Bool().Draw(t, "legacy") {
		v := rapid.SliceOfN(rapid.Uint32(), 5, 5).Draw(t, "quotas")
		k, err := apikey.NewLegacy(a, id, apikey.Quotas{
			RateBuckets: v[0], LatencyServices: v[1], MetricsLabels: v[2], LatencyBufferSize: v[3], DedupTTL: v[4], RateWindow: math.MaxUint32,
		}, bytes.NewReader(secret))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k, err := apikey.New(a, id, holdable(t), bytes.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
