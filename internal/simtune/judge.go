package simtune

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// Judge plays a policy and the default with the seeds that confirm, as [Search] does it at its end.
// saves is the logarithm of the policy's cost in shares of the default's.
func Judge(ctx context.Context, plan Plan, play Player, p policy.Policy) (base, row Row, saves sim.Spread, err error) {
	s := newSearch(plan, play)
	e := s.addPolicy(p)
	if e == nil {
		return base, row, saves, fmt.Errorf("policy %v does not fit the scenarios", p)
	}
	seeds := s.confirmSeeds()
	if err := s.try(ctx, []*entry{s.base, e}, seeds); err != nil {
		return base, row, saves, err
	}
	return s.row(s.base, seeds), s.row(e, seeds), s.difference(e, s.base, seeds), nil
}
