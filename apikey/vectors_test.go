package apikey_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
)

// keyVectors are keys that independent implementations issued and refuse.
type keyVectors struct {
	Keys []struct {
		Case   string
		Text   string
		Auth   string
		Legacy bool
		ID     uint64
		Secret string
		Quotas struct {
			RateBuckets     uint32 `json:"rate_buckets"`
			LatencyServices uint32 `json:"latency_services"`
			MetricsLabels   uint32 `json:"metrics_labels"`
			LatencyBuffer   uint32 `json:"latency_buffer"`
			DedupTTL        uint32 `json:"dedup_ttl_ms"`
			RateWindow      uint32 `json:"rate_window_ms"`
		}
	}
	Refused []struct {
		Case  string
		Text  string
		Error string
	}
}

func loadVectors(t testing.TB) keyVectors {
	t.Helper()
	b, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var v keyVectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Keys) != 19 || len(v.Refused) != 25 {
		t.Fatalf("testdata/keys.json has %d keys and %d refused, want 19 and 25", len(v.Keys), len(v.Refused))
	}
	return v
}

func TestVectors(t *testing.T) {
	for _, v := range loadVectors(t).Keys {
		t.Run(v.Case, func(t *testing.T) {
			k, err := apikey.ParseAny(v.Text)
			if err != nil {
				t.Fatal(err)
			}
			secret := k.Secret()
			if k.Auth() == apikey.AuthNone {
				if secret != [32]byte{} {
					t.Error("a key of mode none has a secret")
				}
			} else if got := hex.EncodeToString(secret[:]); got != v.Secret {
				t.Errorf("Secret() = %s, want %s", got, v.Secret)
			}
			want := apikey.Quotas{
				RateBuckets:       v.Quotas.RateBuckets,
				LatencyServices:   v.Quotas.LatencyServices,
				MetricsLabels:     v.Quotas.MetricsLabels,
				LatencyBufferSize: v.Quotas.LatencyBuffer,
				DedupTTL:          v.Quotas.DedupTTL,
				RateWindow:        v.Quotas.RateWindow,
			}
			if k.Auth().String() != v.Auth || k.ID() != v.ID || k.Legacy() != v.Legacy || k.Quotas() != want || k.IsZero() {
				t.Errorf("parsed %v, auth %v, legacy %v, quotas %+v; want auth %s, id %d, legacy %v, quotas %+v",
					k, k.Auth(), k.Legacy(), k.Quotas(), v.Auth, v.ID, v.Legacy, want)
			}
			if got := k.Encode(); got != strings.ToLower(v.Text) {
				t.Errorf("Encode() = %s, want %s", got, strings.ToLower(v.Text))
			}

			strict, err := apikey.Parse(v.Text)
			switch {
			case v.Legacy && !errors.Is(err, apikey.ErrLegacy):
				t.Errorf("Parse of a legacy key: error %v, want ErrLegacy", err)
			case v.Legacy && !strict.IsZero():
				t.Error("Parse returned a key beside its error")
			case !v.Legacy && (err != nil || !strict.Equal(k)):
				t.Errorf("Parse = %v, %v; want the key that ParseAny gives", strict, err)
			}
		})
	}
}

func TestRefusedVectors(t *testing.T) {
	for _, v := range loadVectors(t).Refused {
		t.Run(v.Case, func(t *testing.T) {
			for name, parse := range map[string]func(string) (apikey.Key, error){"Parse": apikey.Parse, "ParseAny": apikey.ParseAny} {
				k, err := parse(v.Text)
				if !errors.Is(err, apikey.ErrInvalid) {
					t.Fatalf("%s: error %v, want ErrInvalid", name, err)
				}
				if !strings.Contains(err.Error(), v.Error) {
					t.Errorf("%s: error %q does not say %q", name, err, v.Error)
				}
				if !k.IsZero() {
					t.Errorf("%s returned %v beside its error", name, k)
				}
			}
		})
	}
}
