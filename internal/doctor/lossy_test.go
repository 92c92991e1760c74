package doctor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/server"
)

// lossy loses a share of all datagrams, the same ones for a seed: the n-th of one way.
func lossy(seed uint64, share float64) func(udp.Packet) udp.Fate {
	ways := map[string]*rand.Rand{}
	return func(p udp.Packet) udp.Fate {
		way := "to " + p.To.String()
		if p.From.Port() == 29292 {
			way = "from " + p.From.String()
		}
		if ways[way] == nil {
			ways[way] = rand.New(rand.NewPCG(seed, uint64(len(way)<<8)+uint64(way[len(way)-len(":29292")-1])))
		}
		return udp.Fate{Drop: ways[way].Float64() < share}
	}
}

// However much is lost, and whichever questions it hits: it is told as loss, or that
// an address is silent, and never as a cap, a clock, a layout, or a path that loses
// what is long.
func TestLossIsTakenForNothingElse(t *testing.T) {
	honest := []string{"loss", "silent", "silent-server", "oldest-missing", "client", "client-some"}
	for _, share := range []float64{0.3, 0.5, 0.7} {
		for seed := range uint64(40) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.config(w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292"))
				w.net.SetLink(lossy(seed, share))
				r := w.run(cfg)
				for _, d := range r.Diagnoses {
					if !slices.Contains(honest, d.Code) || d.Code == "client" && share > 0.5 { // "this should not be"
						t.Errorf("%.0f %% are lost each way, seed %d: %s", 100*share, seed, d.Says)
					}
				}
				if r.Verdict == Well {
					t.Errorf("%.0f %% are lost each way, seed %d: all is well", 100*share, seed)
				}
			})
		}
	}
}

// Loss beside a fault does not hide it, and makes no other of it: but a clock is silence
// where the only stamp that is right got lost.
func TestFaultBesideLoss(t *testing.T) {
	for fault, set := range map[string]func(*server.Config){
		"horizon-above-cap": func(c *server.Config) { c.DedupTTLCap = 20 * time.Millisecond },
		"clock":             func(c *server.Config) { c.Clock = clock{time.Hour} },
	} {
		for seed := range uint64(10) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.config(w.serveWith(set, "10.0.0.1:29292"))
				w.net.SetLink(lossy(seed, 0.1))
				r := w.run(cfg)
				code := fault
				if fault == "clock" && r.Servers[0].Endpoints[0].State == NoAnswer {
					code = "silent"
				}
				if len(r.Diagnoses) == 0 || r.Diagnoses[0].Code != code {
					t.Errorf("seed %d, want %s: %s", seed, code, fmt.Sprint(r.Diagnoses))
				}
			})
		}
	}
}
