package runner

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

func (c *naive) submit(ctx context.Context, command *conformance.Command) {
	reply := conformance.Reply{Event: "decided", ID: command.ID, Granted: true}
	if len(command.Guards)+len(command.Resources) == 0 && c.fault != "asks-for-nothing" {
		c.say(reply)
		return
	}
	c.mu.Lock()
	f := c.begin(command)
	c.mu.Unlock()
	if f == nil {
		c.say(conformance.Reply{Event: "failed", ID: command.ID, Reason: "no_servers"})
		return
	}
	reply = c.decide(ctx, f)
	reply.ID = command.ID
	c.say(reply)
	if c.fault == "answers-twice" {
		c.say(reply)
	}
}

// begin encodes a request and sends it for the first time.
func (c *naive) begin(command *conformance.Command) *flight {
	if len(c.members) == 0 {
		return nil
	}
	if c.advised && c.fault != "keeps-its-port" {
		c.advised = false
		_ = c.bind(udp.Options{})
	}
	f := &flight{
		members: slices.Clone(c.members), heard: map[ident.ServerID]bool{}, changed: make(chan struct{}, 1), began: time.Now(),
		asked: wire.Request{Layout: c.layout, DedupTTL: c.line.HorizonMs(), Label: command.Label},
	}
	switch c.fault {
	case "rounds-ttl-down":
		f.asked.DedupTTL = uint32(c.line.Horizon() / time.Millisecond)
	case "default-ttl":
		f.asked.DedupTTL = 300
	case "drops-label":
		f.asked.Label = ""
	}
	for i := range command.Guards {
		f.asked.Guards = append(f.asked.Guards, encodeGuard(&command.Guards[i], c.layout))
	}
	for i := range command.Resources {
		f.asked.Resources = append(f.asked.Resources, encodeResource(&command.Resources[i]))
		if c.fault == "hashes-names-only" {
			f.asked.Resources[i].Bucket = ident.Bucket(command.Resources[i].Bucket, 0, 0)
		}
	}
	f.header = wire.Header{UniqueID: c.identity(), Timestamp: uint64(time.Now().UnixMilli())}
	if c.fault == "wrong-clock" {
		f.header.Timestamp /= 1000 // seconds
	}
	f.datagram, _ = c.credential.AppendRequest(nil, c.sealer, &f.header, &f.asked)
	c.flights[f.header.UniqueID] = f
	c.send(f, "first")
	return f
}

func (c *naive) identity() (uid wire.UniqueID) {
	if c.fault == "reuses-identity" && c.lastUID != uid {
		return c.lastUID
	}
	_, _ = rand.Read(uid[:])
	c.lastUID = uid
	return uid
}

// send sends a request to the servers that have not answered.
func (c *naive) send(f *flight, why string) {
	if c.fault == "no-delivery" && why == "delivery" || c.fault == "no-replay" && why == "replay" {
		return
	}
	if why != "delivery" {
		f.sent = time.Now()
	}
	b := f.datagram
	if why != "first" {
		switch c.fault {
		case "re-seals-replays":
			b, _ = c.credential.AppendRequest(nil, c.sealer, &f.header, &f.asked)
		case "new-timestamp":
			h := f.header
			h.Timestamp++
			b, _ = c.credential.AppendRequest(nil, c.sealer, &h, &f.asked)
		case "new-identity":
			h := f.header
			h.UniqueID[3] ^= 0xff
			b, _ = c.credential.AppendRequest(nil, c.sealer, &h, &f.asked)
			c.flights[h.UniqueID] = f
		}
	}
	for i, m := range f.members {
		if f.heard[m.id] && c.fault != "replays-to-all" || c.fault == "skips-a-server" && i == len(f.members)-1 && i > 0 {
			continue
		}
		if c.fault == "moves-to-new-members" && !slices.ContainsFunc(c.members, func(o member) bool { return o.id == m.id }) {
			m = c.members[0]
		}
		for _, to := range m.addrs {
			if c.fault == "first-address-twice" {
				to = m.addrs[0]
			}
			_, _ = c.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: to}})
		}
	}
}

// decide waits for answers, replays, and returns the decision.
func (c *naive) decide(ctx context.Context, f *flight) conformance.Reply {
	until := f.began.Add(c.line.Horizon())
	defer c.all.Go(func() {
		select {
		case <-time.After(time.Until(until)):
		case <-ctx.Done():
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault == "sends-after-the-horizon" && ctx.Err() == nil {
			c.send(f, "replay")
		}
		delete(c.flights, f.header.UniqueID)
	})
	var instant time.Time // of the completion, once there is a candidate
	for round := 0; ; {
		c.mu.Lock()
		now := time.Now()
		if f.candidate != nil && instant.IsZero() {
			instant = f.began.Add(c.line.PreferenceEnd(min(c.line.RoundAt(now.Sub(f.began)), c.line.Rounds())))
			if c.fault == "waits-for-the-horizon" {
				instant = until
			}
		}
		oldest := f.candidate != nil && f.candidate.id == f.members[0].id
		switch {
		case f.candidate != nil && (oldest && c.fault != "ignores-the-oldest" || !now.Before(instant)):
			f.over = true
			reply := f.candidate.reply
			if c.line.CompletionDelivery() && now.Before(until) || c.fault == "always-delivers" {
				c.deliver(ctx, f, until)
			}
			c.mu.Unlock()
			return reply
		case !now.Before(until) && f.candidate == nil:
			f.over = true
			c.mu.Unlock()
			if c.fault == "grants-on-timeout" {
				return conformance.Reply{Event: "decided", Granted: true, Server: f.members[0].id.String()}
			}
			return conformance.Reply{Event: "failed", Reason: "timeout"}
		}
		if f.candidate == nil {
			for round+1 <= c.line.Rounds() && !now.Before(c.roundStart(f, round+1)) {
				round++
				if round < c.line.Rounds() || c.fault == "replays-in-the-final-interval" {
					c.send(f, "replay")
				}
			}
			instant = c.roundStart(f, round+1)
		}
		wake := instant
		if f.candidate == nil {
			instant = time.Time{}
		}
		c.mu.Unlock()
		timer := time.NewTimer(time.Until(wake))
		select {
		case <-timer.C:
		case <-f.changed:
		case <-ctx.Done():
			timer.Stop()
			return conformance.Reply{Event: "failed", Reason: "other"}
		}
		timer.Stop()
	}
}

// deliver sends a request once more, now or when the delay is over.
func (c *naive) deliver(ctx context.Context, f *flight, until time.Time) {
	due := f.sent.Add(c.line.DeliveryDelay())
	switch c.fault {
	case "delivers-at-once":
		due = f.sent
	case "delays-from-the-decision":
		due = time.Now().Add(c.line.DeliveryDelay())
	case "delays-from-the-submit":
		due = f.began.Add(c.line.DeliveryDelay())
	}
	if !due.After(time.Now()) || !due.Before(until) && c.fault != "forgets-late-deliveries" {
		c.send(f, "delivery")
		return
	}
	c.all.Go(func() {
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if time.Now().Before(until) {
			c.send(f, "delivery")
		}
	})
}

func (c *naive) roundStart(f *flight, k int) time.Time {
	at := c.line.Start(k)
	if c.fault == "replays-early" && k < c.line.Rounds() {
		at /= 2
	}
	return f.began.Add(at)
}

// receive judges an answer.
func (c *naive) receive(b []byte) {
	var e wire.Envelope
	if wire.ParseEnvelope(b, &e) != nil {
		return
	}
	f := c.flights[e.Header.UniqueID]
	if f == nil && c.fault == "ignores-identity" {
		for _, f = range c.flights {
			break
		}
	}
	if f == nil {
		return
	}
	if e.Header.Steering == 0 && c.fault == "follows-forged-advice" {
		c.advised = true
	}
	pdu, err := c.credential.Open(&e, &wire.Scratch{})
	if err != nil {
		if c.fault != "accepts-forged" {
			return
		}
		c.count(f, f.members[0].id, true, conformance.Reply{})
		return
	}
	var v wire.ResponseView
	if wire.ParseResponse(pdu, c.layout, &v) != nil {
		if c.fault == "accepts-anything-authentic" {
			c.count(f, f.members[0].id, true, conformance.Reply{})
		}
		return
	}
	id := ident.ServerID(e.Header.KeyID)
	if !slices.ContainsFunc(f.members, func(m member) bool { return m.id == id }) && c.fault != "accepts-strangers" {
		return
	}
	granted, ok := c.matches(f, &v)
	if !ok && c.fault != "accepts-short-answers" {
		return
	}
	if e.Header.Steering == 0 && (c.fault != "hears-decisions-only" || !f.over) {
		c.advised = true
	}
	if c.fault == "rejects-always" {
		granted = false
	}
	var reply conformance.Reply
	for i := range v.Guards() {
		g := v.Guard(i)
		reply.Guards = append(reply.Guards, conformance.GuardResult{Latency: g.Latency, Passed: g.Latency < g.Threshold})
	}
	c.count(f, id, granted, reply)
}

// count makes a valid answer the candidate, if it is to be.
func (c *naive) count(f *flight, id ident.ServerID, granted bool, reply conformance.Reply) {
	if f.over && c.fault != "delivers-to-all" {
		f.heard[id] = true // and is not delivered to
	}
	if f.over || f.heard[id] && c.fault != "counts-duplicates" || time.Since(f.began) >= c.line.Horizon() {
		return
	}
	f.heard[id] = true
	reply.Event, reply.Granted, reply.Server = "decided", granted, id.String()
	if len(reply.Guards) > 1 {
		reply.Guards = nil // it does not pair blocks of one tracker
	}
	better := f.candidate == nil || id.Older(f.candidate.id) || c.fault == "counts-duplicates"
	switch c.fault {
	case "prefers-the-youngest":
		better = f.candidate == nil || f.candidate.id.Older(id)
	case "prefers-grants":
		better = f.candidate == nil || granted && !f.candidate.granted
	}
	if better {
		f.candidate = &result{id, granted, reply}
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// matches holds an answer to the question, block by block in any order.
func (c *naive) matches(f *flight, v *wire.ResponseView) (granted, ok bool) {
	guards, resources := slices.Clone(f.asked.Guards), slices.Clone(f.asked.Resources)
	granted = true
	for i := range v.Guards() {
		g := v.Guard(i)
		at := slices.IndexFunc(guards, func(o wire.Guard) bool { return o.Tracker == g.Tracker && o.Threshold == g.Threshold })
		if at < 0 {
			at = slices.IndexFunc(guards, func(o wire.Guard) bool { return o.Tracker == g.Tracker })
		}
		if at < 0 {
			return granted, false
		}
		limit := min(g.Threshold, guards[at].Threshold)
		granted = granted && (g.Latency < limit || c.fault == "takes-equal-latency" && g.Latency <= limit)
		guards = slices.Delete(guards, at, at+1)
	}
	for i := range v.Resources() {
		r := v.Resource(i)
		at := slices.IndexFunc(resources, func(o wire.Resource) bool { return o.Bucket == r.Bucket })
		if at < 0 {
			return granted, false
		}
		granted = granted && r.Tokens == 0
		resources = slices.Delete(resources, at, at+1)
	}
	return granted, len(guards)+len(resources) == 0
}

// report sends observations to everybody.
func (c *naive) report(command *conformance.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var obs []wire.Observation
	for i := range command.Observations {
		obs = append(obs, encodeObservation(&command.Observations[i], c.layout))
	}
	if c.fault == "reports-less" {
		obs = obs[1:]
	}
	h := wire.Header{Timestamp: uint64(time.Now().UnixMilli()), UniqueID: c.identity()}
	if c.fault == "reports-under-the-request" {
		h.UniqueID = c.lastUID
		for uid := range c.flights {
			h.UniqueID = uid
		}
	}
	b, _ := c.credential.AppendReport(nil, c.sealer, &h, c.layout, obs)
	members := c.members
	if c.fault == "reports-to-one" {
		members = members[:1]
	}
	for _, m := range members {
		for _, to := range m.addrs {
			_, _ = c.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: to}})
			if c.fault == "reports-twice" {
				_, _ = c.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: to}})
			}
		}
	}
}
