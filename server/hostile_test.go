package server

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// hostileLabels are what breaks scrapes, logs, terminals and pages.
var hostileLabels = []string{
	"\x00", "a\nweir_ready 0\n", "\r\n", `"} 1`, `\`, `\"`, `{a="b"}`, "\x1b[2J\x1b]0;title\x07", "\xff\xfe", "\xed\xa0\x80",
	"\u202egnp.exe", "\u2028", "\ufeff", "a\u0301", "\U000e0001", "<script>alert(1)</script>", "# HELP x", "overflow", " ", "\u00a0",
	strings.Repeat("\xf0\x9f\x98\x80", 200), strings.Repeat("\x80", 900), strings.Repeat("x", 900), "../../etc/passwd", "%s%n", "$(reboot)",
}

// Hostile labels, from a socket to a scrape: each is answered, the scrape parses, and what
// it shows of them is short and prints. The log has nothing of them.
func TestHostileLabelsEndToEnd(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}, Name: "shop"}}, Admin: "127.0.0.1:0"})
	c := dial(t, key, s.Addrs()[0])
	for _, label := range hostileLabels {
		c.acquire(&wire.Request{Layout: wire.Layout2, DedupTTL: 60, Label: label})
	}
	_, text := get(t, s, "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the scrape does not parse: %v", err)
	}
	var shown []string
	total := 0.0
	for _, m := range families["weir_label_decisions_total"].GetMetric() {
		total += m.GetCounter().GetValue()
		for _, l := range m.GetLabel() {
			if l.GetName() == "label" {
				shown = append(shown, l.GetValue())
			}
		}
	}
	for _, label := range shown {
		if len(label) > maxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the scrape shows %q", label)
		}
	}
	slices.Sort(shown)
	if n := len(slices.Compact(shown)); int(total) != len(hostileLabels) || n != len(hostileLabels) {
		t.Errorf("%d labels of %d requests are shown as %d of %v", len(hostileLabels), len(hostileLabels), n, total)
	}
	if ready := families["weir_ready"].GetMetric(); len(ready) != 1 || ready[0].GetGauge().GetValue() != 1 {
		t.Errorf("a label changed another metric: %v", ready)
	}
	if log := s.log.String(); strings.Contains(log, "script") || strings.Contains(log, "passwd") {
		t.Errorf("the log shows labels:\n%s", log)
	}
}

// A clock that nothing keeps is warned about, if the system says so, and only then.
func TestUnsynchronizedClockIsToldOf(t *testing.T) {
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}})
	told := func() int { return strings.Count(s.log.String(), "the system says that its clock is not synchronized") }
	if n := told(); (n == 1) != clockUnsynchronized() || n > 1 {
		t.Errorf("told %d times, the system says so: %v", n, clockUnsynchronized())
	}
	// Whatever the system says here.
	for unsynchronized, want := range map[bool]int{false: 0, true: 1} {
		before := told()
		s.warnOfClock(unsynchronized)
		if n := told() - before; n != want {
			t.Errorf("not synchronized: %v; told %d times", unsynchronized, n)
		}
	}
}

// The rule for keys that can be forged on addresses that other machines reach holds for
// tenants without a file too, also later; loopback in any spelling is not exposed.
func TestExposureOfSetTenants(t *testing.T) {
	none := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthNone, 7)}}}
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"127.0.0.1:0", "0.0.0.0:0"}})
	if err := s.SetTenants(none); err == nil || !strings.Contains(err.Error(), "0.0.0.0:0 is open to other machines") {
		t.Errorf("none on 0.0.0.0: %v", err)
	}
	allowed := slices.Clone(none)
	allowed[0].InsecureAuth = true
	if err := s.SetTenants(allowed); err != nil {
		t.Error(err)
	}
	for listen, exposed := range map[string]bool{
		"127.0.0.1:0": false, "127.9.9.9:0": false, "localhost:0": false, "[::1]:0": false, "[::ffff:127.0.0.1]:0": false,
		"[::]:0": true, "0.0.0.0:0": true, "[::ffff:0.0.0.0]:0": true, "10.0.0.1:0": true, "[fe80::1]:0": true, "169.254.0.1:0": true,
	} {
		st, err := Config{Listen: []string{listen}, Tenants: none}.check()
		if err != nil {
			t.Fatal(err)
		}
		if _, got := st.exposed(); got != exposed {
			t.Errorf("%s is exposed: %v, want %v", listen, got, exposed)
		}
	}
}
