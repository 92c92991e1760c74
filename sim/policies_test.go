package sim

import "github.com/weirhq/weir/policy"

// oneRound is a policy without replays and deliveries: a datagram for each server and request.
func oneRound() policy.Policy {
	p := policy.Default()
	p.Replays, p.CompletionDelivery = 0, false
	return p
}
