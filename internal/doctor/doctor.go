package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// slack is for the gaps between the questions of an address but those for its round
// trip, and for a busy machine.
const slack = 2 * time.Second

// examination is one run.
type examination struct {
	cfg        Config
	horizon    time.Duration
	horizonMs  uint32
	credential *wire.Credential
	memo       *memo
	progress   *progress
	report     Report
}

// Run examines. It takes up to cfg.Lookup, 20 ms for each of cfg.Probes, and ten
// seconds or, if that is more, thirteen beside the policy's horizon, of which at most
// thirty count. It ends early with ctx, whose cause is then the error. Other errors are
// of the configuration ([*weir.ConfigError] among them), or say why the machine's
// resolver or source of randomness cannot be used; whatever else fails is in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	x := &examination{cfg: cfg, memo: newMemo(cfg.Client.Resolver), progress: newProgress(cfg.Progress)}
	defer x.progress.stop()
	begin := cfg.Now()
	x.report.At = begin.Round(0)
	if err := x.given(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, x.limit())
	defer cancel()
	for _, step := range []func(context.Context) error{x.find, x.probe, x.ask} {
		if err := step(bounded); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor: %w", context.Cause(ctx))
		}
	}
	x.diagnose()
	x.report.Took = Millis(cfg.Now().Sub(begin))
	return &x.report, nil
}

// limit is how long all may take. It is enough for an address on which every question
// there is has to be waited for, and the client after it: what is cut short would look
// like what is lost.
func (x *examination) limit() time.Duration {
	return x.cfg.Lookup + time.Duration(x.cfg.Probes)*plainGap + 5*patience(x.horizon) + slack + x.clientTime()
}

// given notes what the client was given.
func (x *examination) given() error {
	c := &x.cfg.Client
	timeline, err := c.Policy.Compile()
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	if x.credential, err = wire.NewCredential(c.Key); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	x.horizon, x.horizonMs = timeline.Horizon(), timeline.HorizonMs()
	q := c.Key.Quotas()
	x.report.Given = Given{
		KeyID: c.Key.ID(), Mode: c.Key.Auth().String(), Legacy: c.Key.Legacy(),
		Place: place(c), Layout: int(c.Layout),
		Policy: policyText(c.Policy), HorizonMs: x.horizonMs,
		DedupTTLMs: q.DedupTTL, WindowMs: q.RateWindow, RateBuckets: q.RateBuckets, Trackers: q.LatencyServices,
	}
	return nil
}

// policyText is a policy as a preset and what differs from it, if that is little:
// the preset from which the fewest fields differ.
func policyText(p policy.Policy) string {
	best := strings.Fields(p.String())
	for _, name := range policy.PresetNames() {
		preset, _ := policy.Preset(name)
		words := []string{name}
		same := strings.Fields(preset.String())
		for _, field := range strings.Fields(p.String()) {
			if !slices.Contains(same, field) {
				words = append(words, field)
			}
		}
		if len(words) < len(best) {
			best = words
		}
	}
	return strings.Join(best, " ")
}

// ttl is the dedup TTL that requests carry: a client's, within the key's quota.
func (x *examination) ttl() uint32 {
	return max(1, min(x.horizonMs, x.cfg.Client.Key.Quotas().DedupTTL))
}

// probe asks every address of every server, all at once but each by itself.
func (x *examination) probe(ctx context.Context) error {
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	n := 0
	for i := range x.report.Servers {
		s := &x.report.Servers[i]
		for j := range s.Endpoints {
			sealer, err := wire.NewSealer(x.cfg.Entropy)
			if err != nil {
				return fmt.Errorf("doctor: %w", err)
			}
			p := &prober{
				cfg: &x.cfg, server: s.ID, endpoint: &s.Endpoints[j],
				horizon: x.horizon, ttl: x.ttl(), credential: x.credential, sealer: sealer,
			}
			n++
			all.Go(func() {
				if err := p.examine(ctx); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			})
		}
	}
	x.progress.now("asking %s of %s", count(n, "address"), count(len(x.report.Servers), "server"))
	all.Wait()
	return failed
}
