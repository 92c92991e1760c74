package core

import "time"

// When the model delivers what was decided to the servers that have not answered.

// delivery is when completion delivery of a request that has ended is due, if that is
// neither with its end nor never.
func (m *model) delivery(r *modelRequest) (due time.Duration, later bool) {
	if r.empty() || r.end.outcome != Granted && r.end.outcome != Rejected || !m.plan.policy.CompletionDelivery {
		return 0, false
	}
	due = r.t0 + m.plan.starts[r.replayed] + m.plan.policy.Unit*time.Duration(m.plan.policy.DeliveryDelay)
	return due, due > m.log[r.end.entry].at && due < m.horizon(r)
}

// owed is when completion delivery of a request is due that was still to come before
// an entry: no timer had fallen behind it, and not all servers had answered.
func (m *model) owed(r *modelRequest, entry int) (due time.Duration, ok bool) {
	due, later := m.delivery(r)
	if !later || r.end.entry >= entry || len(r.before(entry)) == len(r.servers) {
		return 0, false
	}
	for i := r.end.entry + 1; i < entry; i++ {
		if m.log[i].deed == deedTimer && m.log[i].at >= due {
			return 0, false
		}
	}
	return due, true
}
