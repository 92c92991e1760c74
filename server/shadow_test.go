package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// What a shadow tenant is asked passes, its repeats too, over a reload that begins to
// enforce; metrics show what enforcing would have done, by label too.
func TestShadowTenant(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	tenant := func(shadow bool) Tenant { return Tenant{Keys: []apikey.Key{key}, Name: "shop", Shadow: shadow} }
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), tenant(true))
	c := newClient(t, key)
	w.ask(c.report(observation(150)))
	c.next()
	over := checkout(11) // of 10, and a guard of 100 ms at 150
	over.Label = "api"
	first := c.request(over)
	passes := func(b []byte) bool {
		t.Helper()
		r := c.open(w.ask(b), wire.Layout2)
		return r.granted()
	}
	if r := c.open(w.ask(first), wire.Layout2); !r.granted() || r.view.Guard(0).Latency != 99 || r.view.Resource(0).Rate != 0 {
		t.Errorf("the answer is %+v, %+v", r.view.Guard(0), r.view.Resource(0))
	}
	if _, err := w.registry.set(clock.Now(), []Tenant{tenant(false)}); err != nil {
		t.Fatal(err)
	}
	if !passes(first) {
		t.Error("a repeat does not pass after the mode was changed, and its first did")
	}
	c.next()
	if passes(c.request(over)) {
		t.Error("enforced, 11 of 10 pass")
	}
	if _, err := w.registry.set(clock.Now(), []Tenant{tenant(true)}); err != nil {
		t.Fatal(err)
	}
	c.next()
	if !passes(c.request(over)) {
		t.Error("in shadow again, 11 of 10 do not pass")
	}
	s := &Server{settings: &settings{}, id: testServer, registry: w.registry}
	const want = `
# HELP weir_decisions_total Requests answered, by outcome: granted or rejected, and repeats of such.
# TYPE weir_decisions_total counter
weir_decisions_total{outcome="granted",tenant="shop"} 0
weir_decisions_total{outcome="rejected",tenant="shop"} 3
weir_decisions_total{outcome="repeat_granted",tenant="shop"} 0
weir_decisions_total{outcome="repeat_rejected",tenant="shop"} 1
# HELP weir_label_decisions_total Requests with a metrics label answered, by label and outcome; labels over the quota count as overflow.
# TYPE weir_label_decisions_total counter
weir_label_decisions_total{label="api",outcome="rejected",tenant="shop"} 3
weir_label_decisions_total{label="api",outcome="repeat_rejected",tenant="shop"} 1
# HELP weir_shadowed_rejections_total Requests rejected, and answered so that they pass because the tenant's mode was shadow.
# TYPE weir_shadowed_rejections_total counter
weir_shadowed_rejections_total{tenant="shop"} 2
# HELP weir_tenant_info 1, with a tenant's key ID, the authentication mode of its newest key, how many keys it has, and its mode: enforce or shadow.
# TYPE weir_tenant_info gauge
weir_tenant_info{auth="aes",key_id="7",keys="1",mode="shadow",tenant="shop"} 1
`
	if err := testutil.GatherAndCompare(prometheusOf(t, s), strings.NewReader(want),
		"weir_decisions_total", "weir_label_decisions_total", "weir_shadowed_rejections_total", "weir_tenant_info"); err != nil {
		t.Error(err)
	}
}
