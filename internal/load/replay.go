package load

import "time"

// replays has the requests of an open loop sent again as a client's policy does: the same datagram, at the
// beginning of each round but the first, as long as no answer came. It belongs to one sender.
type replays struct {
	after   []time.Duration // from the first sending to each replay
	horizon time.Duration   // from when on there is none
	log     []asked         // the latest requests, by their number modulo its length
	n       uint64          // how many were asked
	next    []uint64        // the first request that was not replayed yet, for each replay
}

// asked is a request that was sent.
type asked struct {
	flow   *flow
	slot   uint32
	serial uint32 // of the slot
	at     int64  // ns after the start
}

// newReplays makes the replays of a sender that has so many requests in flight at most, or none.
func (cfg *Config) newReplays(most int) replays {
	var r replays
	if cfg.Replays == nil {
		return r
	}
	r.horizon = cfg.Replays.Horizon()
	for k := 1; k < cfg.Replays.Rounds(); k++ {
		r.after = append(r.after, cfg.Replays.Start(k))
	}
	if len(r.after) > 0 {
		r.log, r.next = make([]asked, most), make([]uint64, len(r.after))
	}
	return r
}

// add notes a request.
func (r *replays) add(a asked) {
	if len(r.after) == 0 {
		return
	}
	r.log[r.n%uint64(len(r.log))] = a
	r.n++
}

// due returns when the next replay is, unless that request is answered by then; ok is false if there is none.
func (r *replays) due() (at int64, ok bool) {
	for k, n := range r.next {
		if n >= r.n {
			continue
		}
		if t := r.of(n).at + int64(r.after[k]); !ok || t < at {
			at, ok = t, true
		}
	}
	return at, ok
}

// of returns the n-th request, or the oldest that is known still.
func (r *replays) of(n uint64) *asked { return &r.log[n%uint64(len(r.log))] }

// take returns a request that is to be replayed by now, whether it is answered or not; nil if there is none.
// Rounds that were slept through are not made up: such a request is replayed once, and not at all from its horizon on.
func (r *replays) take(now int64) *asked {
	for k := len(r.next) - 1; k >= 0; k-- {
		if r.n-r.next[k] > uint64(len(r.log)) {
			r.next[k] = r.n - uint64(len(r.log)) // those before are lost
		}
		for n := r.next[k]; n < r.n && r.of(n).at+int64(r.after[k]) <= now; n++ {
			for j := range r.next[:k+1] {
				r.next[j] = max(r.next[j], n+1)
			}
			if a := r.of(n); now < a.at+int64(r.horizon) {
				return a
			}
		}
	}
	return nil
}

// replay puts what is to be replayed by now into the batches.
func (s *sender) replay(now instant) {
	for a := s.replays.take(now.mono); a != nil; a = s.replays.take(now.mono) {
		f := a.flow
		s.room(f)
		f.mu.Lock()
		f.replay(a)
		f.mu.Unlock()
	}
}

// replay puts a request that has no answer yet into the batch that goes out. There is room for it.
func (f *flow) replay(a *asked) {
	s := &f.slots.all[a.slot]
	if !s.busy || s.serial != a.serial {
		return
	}
	_ = f.add(append(f.space(), s.datagram...), nil)
	if s.counts {
		f.tally.replays++
	}
}
