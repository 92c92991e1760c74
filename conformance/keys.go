package conformance

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirhq/weir/apikey"
)

// NeedParseKey is what a client needs to be asked what is in a key. Clients are taken
// to lack it unless their hello says that they have it.
const NeedParseKey = "parse_key"

// A KeyCase is the text of an API key, and what is in it or why it is none.
type KeyCase struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// Legacy tells a key of the legacy format, which is to be refused unless it was
	// asked for.
	Legacy bool       `json:"legacy,omitempty"`
	Fields *KeyFields `json:"fields,omitempty"` // nil if it is to be refused
	Fault  string     `json:"fault,omitempty"`  // why, for people
}

// KeyFields are what is in a key.
type KeyFields struct {
	Auth   string `json:"auth"`   // "aes", "cookie" or "none"
	ID     string `json:"id"`     // in decimal
	Secret string `json:"secret"` // in hexadecimal; none has an empty one
	// Quotas have the names of [KeyQuotas]; those in milliseconds end in _ms. A
	// client may leave out what it makes no use of.
	Quotas map[string]uint32 `json:"quotas"`
}

// KeyFieldsOf returns what is in a key.
func KeyFieldsOf(k apikey.Key) *KeyFields {
	q := k.Quotas()
	f := &KeyFields{
		Auth: k.Auth().String(), ID: strconv.FormatUint(k.ID(), 10),
		Quotas: map[string]uint32{
			"rate_buckets": q.RateBuckets, "latency_services": q.LatencyServices, "metrics_labels": q.MetricsLabels,
			"latency_buffer_size": q.LatencyBufferSize, "dedup_ttl_ms": q.DedupTTL, "rate_window_ms": q.RateWindow,
		},
	}
	if secret := k.Secret(); k.Auth() != apikey.AuthNone {
		f.Secret = hex.EncodeToString(secret[:])
	}
	return f
}

// KeyQuotas returns the names of the quotas of a key.
func KeyQuotas() []string {
	return []string{"rate_buckets", "latency_services", "metrics_labels", "latency_buffer_size", "dedup_ttl_ms", "rate_window_ms"}
}

// Keys returns every key case. The error is that of [ReadKeys].
func Keys() ([]KeyCase, error) {
	b, err := data.ReadFile("data/keys.json")
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	return ReadKeys(b)
}

// ReadKeys reads a file of key cases, a JSON array. Unknown fields are errors.
func ReadKeys(b []byte) ([]KeyCase, error) {
	var cases []KeyCase
	if err := strict(b, &cases); err != nil {
		return nil, err
	}
	for i := range cases {
		if err := cases[i].check(); err != nil {
			return nil, fmt.Errorf("conformance: key case %d, %q: %w", i, cases[i].Name, err)
		}
	}
	return cases, nil
}

func (c *KeyCase) check() error {
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case (c.Fields == nil) == (c.Fault == ""):
		return errors.New("it has fields and a fault, or neither")
	case c.Fields == nil:
		return nil
	case !slices.Contains([]string{"aes", "cookie", "none"}, c.Fields.Auth):
		return fmt.Errorf("auth %q is none of aes, cookie, none", c.Fields.Auth)
	case len(c.Fields.Quotas) != len(KeyQuotas()):
		return fmt.Errorf("it has %d quotas, not %d", len(c.Fields.Quotas), len(KeyQuotas()))
	}
	_, wrongID := strconv.ParseUint(c.Fields.ID, 10, 64)
	_, wrongSecret := hex.DecodeString(c.Fields.Secret)
	return errors.Join(wrongID, wrongSecret, c.Fields.checkQuotas())
}

func (f *KeyFields) checkQuotas() error {
	for name := range f.Quotas { // whichever is found first
		if !slices.Contains(KeyQuotas(), name) {
			return fmt.Errorf("there is no quota %q", name)
		}
	}
	return nil
}

// Differs says what a client got wrong of what is in a key, or "". Of quotas, only what
// it says counts.
func (f *KeyFields) Differs(got *KeyFields) string {
	switch {
	case got == nil:
		return "nothing in it"
	case got.Auth != f.Auth:
		return "mode " + strconv.Quote(got.Auth)
	case got.ID != f.ID:
		return "ID " + strconv.Quote(got.ID)
	case got.Secret != f.Secret:
		return "another secret"
	}
	for _, name := range KeyQuotas() {
		if n, ok := got.Quotas[name]; ok && n != f.Quotas[name] {
			return fmt.Sprintf("%s %d", name, n)
		}
	}
	if err := got.checkQuotas(); err != nil {
		return err.Error()
	}
	return ""
}
