package conformance

import (
	"strings"
	"testing"
)

// TestKeys reads what is compiled in.
func TestKeys(t *testing.T) {
	cases, err := Keys()
	if err != nil {
		t.Fatal(err)
	}
	taken, legacy := 0, 0
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
		if c.Fields != nil {
			taken++
		}
		if c.Legacy {
			legacy++
		}
	}
	if taken < 15 || len(cases)-taken < 20 || legacy < 5 {
		t.Errorf("%d keys, %d of them taken, %d legacy", len(cases), taken, legacy)
	}
}

const goodKeys = `[{"name":"n","key":"rl-none1x","fields":{"auth":"none","id":"18446744073709551615","secret":"",
	"quotas":{"rate_buckets":1,"latency_services":2,"metrics_labels":3,"latency_buffer_size":4,"dedup_ttl_ms":10,"rate_window_ms":5}}},
	{"name":"m","key":"","fault":"empty"}]`

// TestReadKeysRefuses breaks good cases in one way each.
func TestReadKeysRefuses(t *testing.T) {
	if cases, err := ReadKeys([]byte(goodKeys)); err != nil || len(cases) != 2 {
		t.Fatal(cases, err)
	}
	for _, tt := range []struct{ old, broken, says string }{
		{`"name":"n"`, `"name":""`, "no name"},
		{`"fault":"empty"`, `"fault":""`, "or neither"},
		{`"key":"rl-none1x"`, `"key":"rl-none1x","fault":"f"`, "fields and a fault"},
		{`"auth":"none"`, `"auth":"some"`, `auth "some"`},
		{`"id":"18446744073709551615"`, `"id":"18446744073709551616"`, "out of range"},
		{`"secret":""`, `"secret":"0"`, "odd length"},
		{`"rate_buckets":1,`, ``, "5 quotas"},
		{`"rate_buckets":1`, `"rat_buckets":1`, `no quota "rat_buckets"`},
		{`"fault":"empty"`, `"fault":"empty","why":1`, "unknown field"},
	} {
		broken := strings.Replace(goodKeys, tt.old, tt.broken, 1)
		if _, err := ReadKeys([]byte(broken)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.broken, err)
		}
	}
}

// TestDiffers finds each thing that a client can get wrong of a key, and takes one that leaves
// quotas out.
func TestDiffers(t *testing.T) {
	good := KeyFields{Auth: "none", ID: "7", Quotas: map[string]uint32{"dedup_ttl_ms": 10, "rate_buckets": 1}}
	if what := good.Differs(nil); what == "" {
		t.Error("nothing at all is as good")
	}
	for _, tt := range []struct {
		change func(*KeyFields)
		want   string
	}{
		{func(*KeyFields) {}, ""},
		{func(f *KeyFields) { f.Quotas = nil }, ""},
		{func(f *KeyFields) { f.Quotas = map[string]uint32{"dedup_ttl_ms": 10} }, ""},
		{func(f *KeyFields) { f.Quotas = map[string]uint32{"dedup_ttl_ms": 20} }, "dedup_ttl_ms 20"},
		{func(f *KeyFields) { f.Quotas = map[string]uint32{"dedup_ttl": 10} }, `there is no quota "dedup_ttl"`},
		{func(f *KeyFields) { f.Auth = "aes" }, `mode "aes"`},
		{func(f *KeyFields) { f.ID = "07" }, `ID "07"`},
		{func(f *KeyFields) { f.Secret = "00" }, "another secret"},
	} {
		got := good
		tt.change(&got)
		if what := good.Differs(&got); what != tt.want {
			t.Errorf("%q, want %q", what, tt.want)
		}
	}
}

// TestEmptyKeyIsWritten: an adapter need not look whether there is a key.
func TestEmptyKeyIsWritten(t *testing.T) {
	for cmd, want := range map[string]string{
		"parse_key": `{"cmd":"parse_key","key":""}`,
		"quit":      `{"cmd":"quit"}`,
	} {
		var b strings.Builder
		if err := WriteLine(&b, Command{Cmd: cmd}); err != nil || b.String() != want+"\n" {
			t.Errorf("%s: %v", b.String(), err)
		}
	}
}
