package runner

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/internal/udp"
)

// runNaive plays cases with a naive client in virtual time.
func runNaive(t *testing.T, fault, match string, allowReseal bool) (Summary, map[string]Result) {
	t.Helper()
	results := map[string]Result{}
	var summary Summary
	synctest.Test(t, func(t *testing.T) {
		host := udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"))
		var err error
		summary, err = Run(context.Background(), Config{
			Start:    func(context.Context) (Client, error) { return newNaive(host, fault), nil },
			Stack:    host,
			Match:    regexp.MustCompile(match),
			Attempts: 1, AllowReseal: allowReseal,
			Done: func(r Result) { results[r.Name] = r },
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return summary, results
}

// TestRightClient passes every case, so that what fails below fails for its fault.
func TestRightClient(t *testing.T) {
	summary, results := runNaive(t, "", "", false)
	for name, r := range results {
		if r.Verdict != Passed {
			t.Errorf("%s: %v %s %v", name, r.Verdict, r.Reason, r.Findings)
		}
	}
	if !summary.Conforms() || summary.Passed < 200 {
		t.Errorf("%+v", summary)
	}
}

// TestBrokenClients breaks the client in one way each, and sees the case that is
// about it fail, by the rule that is.
func TestBrokenClients(t *testing.T) {
	for _, tt := range []struct{ fault, name, rule string }{
		{"takes-legacy-keys", "key-vectors/legacy-aes", "lines"},
		{"swaps-quotas", "key-vectors/free-plan-aes", "key"},
		{"re-seals-replays", "wire/same-bytes", "same-bytes"},
		{"new-timestamp", "wire/same-bytes", "same-bytes"},
		{"new-identity", "fallback/timeout", "identity"},
		{"ignores-preference", "fallback/second-of-three", "decision"},
		{"ignores-preference", "fallback/third-of-three", "decision"},
		{"waits-for-the-horizon", "fallback/second-of-three", "decision"},
		{"ignores-the-oldest", "fallback/oldest-of-three", "decision"},
		{"prefers-the-youngest", "fallback/rejection-replaces-grant", "decision"},
		{"prefers-grants", "fallback/rejection-replaces-grant", "decision"},
		{"accepts-strangers", "identity/stranger", "decision"},
		{"accepts-strangers", "identity/stranger-in-the-clear", "decision"},
		{"accepts-forged", "identity/forged-with-another-key", "decision"},
		{"accepts-forged", "identity/forged-with-another-cookie", "decision"},
		{"accepts-forged", "identity/forged-only", "timeout"},
		{"accepts-forged", "identity/other-mode-none", "decision"},
		{"accepts-anything-authentic", "identity/no-answer", "decision"},
		{"accepts-short-answers", "identity/invalid-only", "timeout"},
		{"ignores-identity", "identity/other-identity", "decision"},
		{"counts-duplicates", "identity/duplicate-of-a-candidate", "decision"},
		{"sends-after-the-horizon", "fallback/timeout", "horizon"},
		{"replays-in-the-final-interval", "fallback/timeout", "sends"},
		{"no-replay", "fallback/timeout", "replay"},
		{"replays-early", "fallback/timeout", "replay"},
		{"replays-to-all", "fallback/second-of-three", "sends"},
		{"skips-a-server", "fallback/oldest-of-three", "fan-out"},
		{"no-delivery", "fallback/third-of-three", "completion-delivery"},
		{"always-delivers", "fallback/no-delivery", "sends"},
		{"delivers-at-once", "delivery/01", "sends"},
		{"delivers-to-all", "delivery/01", "sends"},
		{"no-delivery", "delivery/02", "completion-delivery"},
		{"delays-from-the-decision", "delivery/06", "completion-delivery"},
		{"delays-from-the-submit", "delivery/08", "completion-delivery"},
		{"forgets-late-deliveries", "delivery/10", "completion-delivery"},
		{"grants-on-timeout", "fallback/timeout", "timeout"},
		{"rejects-always", "wire/layout-2", "decision"},
		{"answers-twice", "fallback/oldest-of-three", "completion"},
		{"takes-equal-latency", "wire/guard-only", "decision"},
		{"asks-for-nothing", "wire/nothing", "membership"},
		{"wrong-layout", "wire/layout-1", "layout"},
		{"wrong-layout", "wire/layout-2", "layout"},
		{"reuses-identity", "wire/fresh-identities", "identity"},
		{"hashes-names-only", "wire/ids", "blocks"},
		{"drops-label", "wire/mode-aes", "label"},
		{"wrong-clock", "wire/mode-none", "timestamp"},
		{"rounds-ttl-down", "policy/ttl-rounds-up-in-use", "dedup-ttl"},
		{"default-ttl", "policy/default", "dedup-ttl"},
		{"takes-any-policy", "policy/bad-unit-0", "lines"},
		{"ignores-quota", "policy/longest-horizon", "lines"},
		{"takes-legacy-keys", "keys/legacy-unasked", "lines"},
		{"reports-to-one", "reports/to-all", "report"},
		{"reports-less", "reports/to-all", "report"},
		{"reports-twice", "reports/to-all", "report"},
		{"reports-under-the-request", "reports/beside-a-request", "identity"},
		{"takes-any-target", "dns/skipped-targets", "membership"},
		{"takes-records-twice", "dns/doubled-record", "sends"},
		{"one-address", "dns/two-addresses", "fan-out"},
		{"first-address-twice", "dns/two-addresses", "fan-out"},
		{"ignores-ttl", "dns/joins", "fan-out"},
		{"ignores-ttl", "dns/leaves", "membership"},
		{"forgets-members", "dns/failure-keeps-members", "fan-out"},
		{"forgets-members", "dns/emptiness-keeps-members", "fan-out"},
		{"moves-to-new-members", "dns/later-requests-only", "membership"},
		{"keeps-its-port", "ports/change", "port"},
		{"any-port", "ports/change", "port"},
		{"hears-decisions-only", "ports/late-advice", "port"},
		{"follows-forged-advice", "ports/invalid-advice", "port"},
	} {
		t.Run(tt.fault+"/"+tt.name, func(t *testing.T) {
			summary, results := runNaive(t, tt.fault, "^"+regexp.QuoteMeta(tt.name)+"$", false)
			r := results[tt.name]
			if r.Verdict != Failed || summary.Conforms() {
				t.Fatalf("%v: %v", r.Verdict, summary)
			}
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == tt.rule }) {
				t.Errorf("nothing is said about %s: %v", tt.rule, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Want == "" || f.Got == "" || f.Section == "" {
					t.Errorf("%+v says too little", f)
				}
			}
		})
	}
}

// TestAllowReseal takes a client that seals every send anew, but not one whose
// replays have another identity.
func TestAllowReseal(t *testing.T) {
	if s, _ := runNaive(t, "new-timestamp", "^(wire|fallback)/", true); !s.Conforms() {
		t.Errorf("%+v", s)
	}
	if s, _ := runNaive(t, "new-identity", "^fallback/timeout$", true); s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}
