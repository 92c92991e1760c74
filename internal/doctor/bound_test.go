package doctor

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/server"
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

// A legacy key may allow a horizon of many seconds, which a client then takes.
func TestTimeForALongHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		quotas := apikey.DefaultQuotas()
		quotas.DedupTTL = 20_000
		var err error
		if w.key, err = apikey.NewLegacy(apikey.AuthAES, 7, quotas, rand.Reader); err != nil {
			t.Fatal(err)
		}
		roomy := func(cfg *server.Config) { cfg.DedupTTLCap = 20 * time.Second }
		a, b := w.serveWith(roomy, "10.0.0.1:29292"), w.serveWith(roomy, "10.0.0.2:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate { return udp.Fate{Drop: p.To == a.Addrs[0]} })
		cfg := w.config(a, b)
		cfg.Lookup, cfg.Client.Policy = time.Millisecond, mustPolicy(t, "strict-oldest unit=5s")
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.want(r, Degraded, "silent-server", "oldest-missing")
		if r.Path.Asked != 1 || r.Path.Decided != 1 {
			t.Errorf("%+v", r.Path)
		}
	})
}
