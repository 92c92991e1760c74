package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/policy"
)

// TestDelayedDelivery holds the completion deliveries of a run with losses to the policy: each is
// of a request that the record names, exactly the delay after it was last sent, or with the decision
// if that is later or the delay would not be over before the horizon, and to a server that has not
// answered it.
func TestDelayedDelivery(t *testing.T) {
	for _, units := range []uint32{0, 1, 2} {
		s := small(func(s *Scenario) {
			s.Policy = policy.Default()
			s.Policy.DeliveryDelay = units
			s.Links[0].Loss, s.Links[0].Delay = 100_000, Uniform(ms(1), ms(15)) // 10 %
			dense(s, 2000)
		})
		got := play(t, s, 1)
		delay := time.Duration(units) * 20 * time.Millisecond
		last, submitted, decided := map[uint64]time.Duration{}, map[uint64]time.Duration{}, map[uint64]time.Duration{}
		answered, sent := map[[2]uint64]bool{}, map[[2]uint64]bool{}
		late := 0
		for i := range got {
			r := &got[i]
			who := [2]uint64{r.Request, uint64(r.Server)}
			switch r.Kind {
			case RecordSubmit:
				submitted[r.Request] = r.At
			case RecordDecide:
				if r.Completion.Outcome <= core.Rejected {
					decided[r.Request] = r.At
				}
			case RecordResponse:
				answered[who] = answered[who] || r.Received.Valid()
			case RecordSend:
				if r.Send != core.SendCompletion {
					last[r.Request] = r.At
					continue
				}
				at := last[r.Request] + delay
				if _, ok := decided[r.Request]; ok {
					late++
				} else if at <= r.At || at >= submitted[r.Request]+ms(60) {
					at = r.At // and told before the decision
				}
				if r.Request == 0 || r.At != at || r.At >= submitted[r.Request]+ms(60) || answered[who] || sent[who] {
					t.Errorf("%v: delivery of request %d to server %d, answered %v, again %v; want it at %v", r.At, r.Request, r.Server, answered[who], sent[who], at)
				}
				sent[who] = true
			}
		}
		// Who was sent nothing more had answered, in whatever round.
		for id, at := range decided {
			for server := range uint64(2) {
				if who := [2]uint64{id, server}; !answered[who] && !sent[who] {
					t.Errorf("request %d, decided at %v, is never delivered to server %d, which has not answered", id, at, server)
				}
			}
		}
		if (late > 100) != (units > 0) || len(sent) < 200 {
			t.Errorf("%d of %d deliveries came later than the decision", late, len(sent))
		}
	}
}

// TestDelayedDeliveryAtTheEnd sees the last request's delivery served: a run is not over before.
func TestDelayedDeliveryAtTheEnd(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Policy = policy.Default()
		s.Policy.DeliveryDelay = 1
		s.Links = append(s.Links, Link{From: "web", To: "B", Loss: 1_000_000})
		s.Length = ms(10)
	})
	got := play(t, s, 1)
	if n := got.count(RecordSend, func(r *Record) bool { return r.Send == core.SendCompletion && r.Request == 1 }); n != 1 {
		t.Errorf("%d deliveries", n)
	}
	if n := got.count(RecordServe, func(r *Record) bool { return r.Verdict == limiter.Granted }); n != 1 {
		t.Errorf("%d executions", n)
	}
}

// TestDelayedDeliveryOfAnInstant decides in the instant of the send, so that the delivery is due in that in
// which the run ceases to wait for it.
func TestDelayedDeliveryOfAnInstant(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Policy = policy.Default()
		s.Policy.DeliveryDelay = 1
		s.Links = []Link{{From: "web", To: "B", Loss: million}}
		s.Length = ms(10)
	})
	got := play(t, s, 1)
	if n := got.count(RecordSend, func(r *Record) bool { return r.Send == core.SendCompletion && r.Request == 1 && r.At == ms(20) }); n != 1 {
		t.Errorf("%d deliveries of request 1 after its delay", n)
	}
}
