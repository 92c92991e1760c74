package sim

import (
	"strconv"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// ClientNames returns the names of a run's clients, by [Record.Client].
func (s *Scenario) ClientNames() []string {
	var names []string
	for i := range s.Clients {
		g := &s.Clients[i]
		if g.count() == 1 {
			names = append(names, g.Name)
			continue
		}
		for n := range g.count() {
			names = append(names, g.Name+"/"+strconv.Itoa(n))
		}
	}
	return names
}

func (g *Clients) count() int { return max(1, g.Count) }

func (b *Bucket) count() int { return max(1, b.Count) }

// BucketName returns the name of the n-th bucket of a family.
func (b *Bucket) BucketName(n int) string {
	if b.count() == 1 {
		return b.Name
	}
	return b.Name + "/" + strconv.Itoa(n)
}

func (s *Scenario) policy() policy.Policy {
	if s.Policy.IsZero() {
		return policy.Default()
	}
	return s.Policy
}

func (s *Scenario) auth() apikey.Auth {
	if s.Auth == 0 {
		return apikey.AuthNone
	}
	return s.Auth
}

func (s *Scenario) quotas() apikey.Quotas {
	if s.Quotas == (apikey.Quotas{}) {
		return apikey.DefaultQuotas()
	}
	return s.Quotas
}

func (s *Scenario) layout() wire.Layout {
	if s.Layout == 0 {
		return wire.Layout2
	}
	return s.Layout
}
