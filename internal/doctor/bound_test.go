package doctor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
)

// However little time the lookups get, what comes after them has enough: what was
// not waited for would be told as lost.
func TestTimeForEverything(t *testing.T) {
	for name, c := range map[string]struct {
		probes int
		policy string
	}{
		"a long horizon":      {DefaultProbes, "strict-oldest unit=660ms"},
		"many probes":         {MaxProbes, "strict-oldest"},
		"both":                {MaxProbes, "strict-oldest unit=660ms"},
		"both, and no replay": {MaxProbes, "strict-oldest unit=990ms replays=0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.key = newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.DedupTTL = 2000 })
				a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
				w.net.SetLink(func(p udp.Packet) udp.Fate {
					return udp.Fate{Drop: p.To == a.Addrs[0] || p.To == b.Addrs[0] && len(p.Payload) > 1000}
				})
				cfg := w.config(a, b)
				cfg.Probes, cfg.Lookup, cfg.Client.Policy = c.probes, time.Millisecond, mustPolicy(t, c.policy)
				r := w.run(cfg)
				w.want(r, Degraded, "silent-server", "long-lost", "oldest-missing")
				if e := r.Servers[0].Endpoints[0]; e.Sent != c.probes+again || e.Fan == nil || e.Fan.Sent != len(fan()) {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}
