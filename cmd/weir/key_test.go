package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
)

func TestSetQuotas(t *testing.T) {
	q := apikey.DefaultQuotas()
	err := setQuotas(&q, []string{"rate-buckets=1", "latency-services=2", "metrics-labels=4", "latency-buffer-size=8", "dedup-ttl=1.5s", "rate-window=1m"})
	want := apikey.Quotas{RateBuckets: 1, LatencyServices: 2, MetricsLabels: 4, LatencyBufferSize: 8, DedupTTL: 1500, RateWindow: 60000}
	if err != nil || q != want {
		t.Errorf("setQuotas gives %+v, %v; want %+v", q, err, want)
	}
	if err := setQuotas(&q, []string{"rate-window=unlimited"}); err != nil || q.RateWindow != 1<<32-1 {
		t.Errorf("rate-window=unlimited gives %d, %v", q.RateWindow, err)
	}
	for _, bad := range []string{
		"", "=", "rate-buckets", "rate-buckets=", "rate-buckets=-1", "rate-buckets=4294967296", "rate-buckets=unlimited", "rate-buckets=1s",
		"dedup-ttl=unlimited", "dedup-ttl=-1s", "dedup-ttl=1us", "dedup-ttl=2000h", "Rate-Buckets=1",
	} {
		if err := setQuotas(&q, []string{bad}); err == nil {
			t.Errorf("quota %q is taken", bad)
		}
	}
}

// TestQuotaText holds that what is shown can be given back.
func TestQuotaText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint32().Draw(t, "quota")
		for _, quota := range quotas {
			got, err := parseQuota(formatQuota(v, quota.unit), quota.unit)
			if err != nil || got != v {
				t.Errorf("%s: %d is shown as %s, which reads %d, %v", quota.name, v, formatQuota(v, quota.unit), got, err)
			}
		}
	})
}

func TestWriteSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.key")
	if err := writeSecret(path, "first\n"); err != nil {
		t.Fatal(err)
	}
	if err := writeSecret(path, "second\n"); err == nil || !strings.Contains(err.Error(), "never overwritten") {
		t.Errorf("writing over a key: error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "first\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestKeyNewWithoutEntropy(t *testing.T) {
	broken := errors.New("no entropy today")
	for _, legacy := range []bool{false, true} {
		std, _, _ := testIO("", nil)
		key, err := (&keyNewCmd{Auth: "aes", ID: 7, Legacy: legacy}).issue(std, failingReader{broken})
		if !errors.Is(err, broken) || !key.IsZero() {
			t.Errorf("legacy %v: %v, %v; want the entropy's error", legacy, key, err)
		}
	}
}

// TestInspectShowsNoSecret shows keys of every kind and looks for their secret.
func TestInspectShowsNoSecret(t *testing.T) {
	secret := bytes.Repeat([]byte{0xc5}, apikey.SecretSize)
	for _, issue := range []func() (apikey.Key, error){
		func() (apikey.Key, error) {
			return apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), bytes.NewReader(secret))
		},
		func() (apikey.Key, error) {
			return apikey.New(apikey.AuthCookie, 7, apikey.DefaultQuotas(), bytes.NewReader(secret))
		},
		func() (apikey.Key, error) {
			return apikey.NewLegacy(apikey.AuthAES, 7, apikey.DefaultQuotas(), bytes.NewReader(secret))
		},
	} {
		key, err := issue()
		if err != nil {
			t.Fatal(err)
		}
		for _, asJSON := range []bool{false, true} {
			std, out, errs := testIO("\n "+key.Encode()+" \n", nil)
			if err := (&keyInspectCmd{JSON: asJSON}).Run(std); err != nil {
				t.Fatal(err)
			}
			shown := strings.ToLower(out.String() + errs.String())
			if !strings.Contains(shown, key.Auth().String()) {
				t.Errorf("%v: the mode is not shown in %s", key, shown)
			}
			for _, part := range []string{"c5c5", "197 197", key.Encode()[20:30]} {
				if strings.Contains(shown, part) {
					t.Errorf("%v: the secret is shown in %s", key, shown)
				}
			}
		}
	}
}

func TestReadKeyBounds(t *testing.T) {
	if _, err := readKey(strings.NewReader(strings.Repeat("\n", 5000))); err == nil || !strings.Contains(err.Error(), "longer than 4096") {
		t.Errorf("an endless key: error %v", err)
	}
	broken := errors.New("broken pipe")
	if _, err := readKey(failingReader{broken}); !errors.Is(err, broken) {
		t.Errorf("a broken input: error %v", err)
	}
}
