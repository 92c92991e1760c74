package sim

import (
	"net/netip"
	"time"
)

// steering is how far each client is with the advice to change its port.
type steering []portState

type portState struct {
	port     netip.AddrPort // which the client last sent from
	advised  bool           // an answer on it advised another, at since
	measured bool
	since    time.Duration
}

// answered notes the advice of a valid answer, if it is the first that came in on the port that the
// client sends from.
func (s steering) answered(r *Record, measured bool, out *SteeringUse) {
	if r.Keep {
		return
	}
	if measured {
		out.Advised++
	}
	if p := &s[r.Client]; !p.advised && p.port == r.Port {
		p.advised, p.measured, p.since = true, measured, r.At
	}
}

// sent notes where a client sends from. The first send from another port than before follows the
// advice.
func (s steering) sent(r *Record, out *SteeringUse) {
	p := &s[r.Client]
	if p.port == r.Port {
		return
	}
	if p.advised && p.measured {
		out.Applied.Add(int64(r.At - p.since))
	}
	*p = portState{port: r.Port}
}

// pending returns how many clients have not followed advice.
func (s steering) pending() uint64 {
	n := uint64(0)
	for i := range s {
		if s[i].advised && s[i].measured {
			n++
		}
	}
	return n
}
