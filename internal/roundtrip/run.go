package roundtrip

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir/wire"
)

// tick is how often progress is told.
const tick = 100 * time.Millisecond

// Run measures. It takes the warm-up, For, and up to the timeout; it ends at once with
// ctx, and then the result is what there is, marked as interrupted. The error is of the
// configuration, or says why the machine's randomness or the key cannot be used; what
// fails on the way to a server is in the result.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	probers, err := newProbers(&cfg)
	if err != nil {
		return nil, err
	}
	begin := cfg.Now()
	r := &Result{At: begin.Add(cfg.WarmUp).Round(0), Rate: cfg.Rate, Timeout: cfg.Timeout}
	// What one of them cannot do for want of randomness, none can.
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for _, p := range probers {
		r.Paths = append(r.Paths, p.path)
		all.Go(func() {
			if err := p.run(running, begin); err != nil {
				stop(err)
			}
		})
	}
	done := make(chan struct{})
	var telling sync.WaitGroup
	if cfg.Progress != nil {
		telling.Go(func() { tell(&cfg, begin, done) })
	}
	all.Wait()
	close(done)
	telling.Wait()
	if running.Err() != nil && ctx.Err() == nil {
		return nil, context.Cause(running)
	}
	r.Took = cfg.For
	if passed := max(0, cfg.Now().Sub(begin)-cfg.WarmUp); ctx.Err() != nil && passed < cfg.For {
		r.Took, r.Interrupted = passed, true
	}
	return r, nil
}

// tell tells progress until all is done.
func tell(cfg *Config, begin time.Time, done <-chan struct{}) {
	every := time.NewTicker(tick)
	defer every.Stop()
	all := cfg.WarmUp + cfg.For
	for {
		select {
		case <-every.C:
			cfg.Progress(min(cfg.Now().Sub(begin), all), all)
		case <-done:
			return
		}
	}
}

// newProbers makes one for each address.
func newProbers(cfg *Config) ([]*prober, error) {
	credential, err := wire.NewCredential(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("roundtrip: %w", err)
	}
	entropy := &sharedReader{from: cfg.Entropy}
	var probers []*prober
	for _, s := range cfg.Servers {
		for _, addr := range s.Addrs {
			sealer, err := wire.NewSealer(entropy)
			if err != nil {
				return nil, fmt.Errorf("roundtrip: %w", err)
			}
			path := &Path{Server: s.ID, Addr: addr, Tag: s.ID.String(), trips: hdr.New(1, int64(Longest), digits)}
			if len(s.Addrs) > 1 {
				path.Tag += "@" + addr.String()
			}
			probers = append(probers, &prober{cfg: cfg, path: path, entropy: entropy, credential: credential, sealer: sealer})
		}
	}
	for i, p := range probers {
		p.schedule = newSchedule(cfg, i, len(probers))
	}
	return probers, nil
}

// sharedReader is a source of randomness for several goroutines.
type sharedReader struct {
	mu   sync.Mutex
	from io.Reader
}

// Read implements [io.Reader].
func (r *sharedReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.from, b)
}
