package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/ident"
)

// How often a client is asked, how long it may take in all, and how much of its
// policy's horizon the first time may take, if that is more.
const (
	acquires   = 5
	clientTime = 3 * time.Second
	maxHorizon = 30 * time.Second
)

// clientTime is how long the client may take: one request takes up to its horizon.
func (x *examination) clientTime() time.Duration {
	return max(clientTime, min(x.horizon, maxHorizon)+time.Second)
}

// ask asks as a client would: through discovery, with its policy, all servers at
// once.
func (x *examination) ask(ctx context.Context) error {
	if !slices.ContainsFunc(x.report.Servers, func(s Server) bool { return !s.Future }) {
		return nil // a client would know nobody
	}
	x.progress.now("asking as a client")
	p := new(Path)
	x.report.Path = p
	ctx, cancel := context.WithTimeout(ctx, x.clientTime())
	defer cancel()
	begin := x.cfg.Now()
	cfg := x.cfg.Client
	if x.memo != nil {
		cfg.Resolver = x.memo
	}
	client, err := x.cfg.Dial(ctx, cfg)
	if err != nil {
		p.Error = plainError(err)
		return nil
	}
	defer client.Close()
	for range acquires {
		if p.Asked > 0 && x.cfg.Now().Sub(begin) >= clientTime {
			break
		}
		a, err := client.Ask(ctx)
		if err != nil && ctx.Err() != nil && p.Asked > 0 {
			break // there was no time for this one
		}
		p.Asked++
		if err == nil {
			p.decided(a)
			continue
		}
		p.Error, p.TimedOut = plainError(err), errors.Is(err, weir.ErrTimeout)
		if p.Asked >= 2 && p.Decided == 0 {
			break
		}
	}
	for _, id := range p.By {
		p.Servers = append(p.Servers, id.String())
	}
	return nil
}

// decided counts a decision.
func (p *Path) decided(a Answer) {
	p.Decided++
	p.Slowest = max(p.Slowest, Millis(a.Elapsed))
	if a.Round > 0 {
		p.Replays++
	}
	if !slices.Contains(p.By, a.Server) {
		p.By = append(p.By, a.Server)
		slices.SortFunc(p.By, func(a, b ident.ServerID) int {
			if a.Older(b) {
				return -1
			}
			return 1
		})
	}
}
