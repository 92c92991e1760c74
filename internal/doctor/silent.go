package doctor

import (
	"context"
	"sync"
)

// silent examines an address that answered nothing: a connected socket hears what
// ICMP has to say, and a volley of other stamps and other dedup TTLs finds out
// whether one of them is what the server drops.
func (p *prober) silent(ctx context.Context) error {
	ep := p.endpoint
	if ep.Seen.Strangers > 0 {
		return nil // it answers: key, clock and path are right
	}
	knock := question{kind: plain, ttl: p.ttl}
	if err := knock.seal(p.credential, p.sealer, p.cfg.Entropy, p.cfg.Client.Layout, p.cfg.Now()); err != nil {
		return err
	}
	knocking, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	var mu sync.Mutex
	var refused error
	var wait sync.WaitGroup
	wait.Go(func() {
		err := p.cfg.Knock(knocking, ep.Addr, knock.datagram)
		if outOfFiles(err) {
			return // nobody knocked
		}
		mu.Lock()
		defer mu.Unlock()
		refused = err
	})
	isRefused := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused != nil
	}
	err := p.volley(ctx, isRefused)
	if err == nil && ep.Seen.Answers > 0 && p.answered(plain) == 0 {
		p.proven, err = p.compare(ctx)
	}
	if p.heardAnything() || isRefused() {
		cancel() // there is nothing to wait for
	}
	wait.Wait()
	if refused != nil && !p.heardAnything() {
		p.knocked = true
		ep.State, ep.Error = refusal(refused), plainError(refused)
	}
	return err
}

// volley asks with short dedup TTLs, with the stamp of now once more, and with
// every stamp of the fan, until something authentic comes in.
func (p *prober) volley(ctx context.Context, refused func() bool) error {
	var qs []question
	for _, ttl := range ttls(p.ttl) {
		qs = append(qs, question{kind: brief, ttl: ttl})
	}
	qs = append(qs, times(again, question{kind: plain, ttl: p.ttl})...)
	err := p.ask(ctx, p.patience()/4, fanGap, refused, qs...)
	if err != nil || p.endpoint.Heard || refused() {
		return err
	}
	qs = qs[:0:0]
	for _, shift := range fan() {
		qs = append(qs, question{kind: shifted, ttl: min(briefTTL, p.ttl), shift: shift})
	}
	err = p.ask(ctx, p.patience(), fanGap, func() bool { return p.endpoint.Heard || refused() }, qs...)
	t := p.tally(shifted)
	p.endpoint.Fan = &t
	return err
}

// compare finds out whether what the volley changed is what plain questions are
// dropped for: the stamp if a short TTL alone is not answered, else the TTL.
func (p *prober) compare(ctx context.Context) (bool, error) {
	short := question{kind: brief, ttl: min(briefTTL, p.ttl)}
	if p.answered(brief) == 0 {
		proven, err := p.dropped(ctx, p.heard(), short)
		if proven || err != nil || p.answered(brief) == 0 {
			return proven, err
		}
	}
	return p.dropped(ctx, short, question{kind: plain, ttl: p.ttl})
}

// heard is a question like one of the fan that was answered.
func (p *prober) heard() question {
	var like question
	for _, q := range p.questions {
		if q.answered && q.kind == shifted {
			like = question{kind: shifted, ttl: q.ttl, shift: q.shift}
		}
	}
	return like
}

// ttls are dedup TTLs below one that is not answered, longest first, the shortest
// twice.
func ttls(ttl uint32) []uint32 {
	var all []uint32
	for _, t := range [...]uint32{1500, 1000, 500, 300, 200, 100, 50, briefTTL, briefTTL} {
		if t < ttl {
			all = append(all, t)
		}
	}
	return all
}

// heardAnything reports whether any datagram came back.
func (p *prober) heardAnything() bool { return p.endpoint.Heard || p.endpoint.Seen != Seen{} }
