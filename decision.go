package weir

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// A Decision is a server's answer to a request. It is a value of the caller's
// own. The zero Decision is no decision and not granted.
type Decision struct {
	granted bool
	profile Profile

	// The results: the first few in place, so that an ordinary decision is
	// made without allocating, or all of them in a slice.
	inlineResources [inlineResources]ResourceResult
	inlineGuards    [inlineGuards]GuardResult
	moreResources   []ResourceResult
	moreGuards      []GuardResult
	resources       int
	guards          int
}

const (
	inlineResources = 4
	inlineGuards    = 2
)

// A ResourceResult is what the decision says about one resource.
type ResourceResult struct {
	Resource   Resource
	ActualRate uint32 // tokens consumed in the bucket's window, with this request's if it was granted
	Deficit    uint16 // how many of the tokens wanted were missing; 0 = covered

	earlier int // tokens that earlier resources of the request want of the same bucket
}

// Covered reports whether all the tokens were to be had.
func (r ResourceResult) Covered() bool { return r.Deficit == 0 }

// NoRoom reports whether the server refused because it has no room for another
// bucket, not because this one is full: the deficit is there although the tokens
// would have fitted. The key's quota rate_buckets_max is used up. That is for the
// operator to mend, and passes when other buckets are forgotten, not when this
// one's window does.
func (r ResourceResult) NoRoom() bool {
	b := &r.Resource.Bucket
	return r.Deficit > 0 && b.window > 0 && int64(r.ActualRate)+int64(r.earlier+r.Resource.Tokens) <= int64(b.limit)
}

// String says it in words.
func (r ResourceResult) String() string {
	b := &r.Resource.Bucket
	switch {
	case r.Covered() && r.Resource.Tokens == 0:
		return fmt.Sprintf("bucket %q: %d of %d in %v", b.name, r.ActualRate, b.limit, b.window)
	case r.Covered():
		return fmt.Sprintf("bucket %q: covered (%d of %d in %v)", b.name, r.ActualRate, b.limit, b.window)
	case r.NoRoom():
		return fmt.Sprintf("bucket %q: the server has no room for another bucket (quota rate_buckets_max)", b.name)
	}
	return fmt.Sprintf("bucket %q: %d of %d tokens missing (%d of %d in %v)",
		b.name, r.Deficit, r.Resource.Tokens, r.ActualRate, b.limit, b.window)
}

// A GuardResult is what the decision says about one guard.
type GuardResult struct {
	Guard   Guard
	Latency time.Duration // the server's estimate, 0 while it has too few samples
	Passed  bool          // it is below the threshold
}

// String says it in words.
func (g GuardResult) String() string {
	if g.Passed {
		return fmt.Sprintf("guard %q: %v is below %v", g.Guard.Tracker.name, g.Latency, g.Guard.Threshold)
	}
	return fmt.Sprintf("guard %q: %v is not below %v", g.Guard.Tracker.name, g.Latency, g.Guard.Threshold)
}

// Granted reports whether every guard passed and every token was consumed. If
// not, nothing was consumed.
func (d Decision) Granted() bool { return d.granted }

// NoRoom reports whether, of the resources, any was refused for want of room:
// see [ResourceResult.NoRoom].
func (d Decision) NoRoom() bool {
	for _, r := range d.resourceResults() {
		if r.NoRoom() {
			return true
		}
	}
	return false
}

// Server returns the ID of the server that decided, 0 for a request for nothing,
// which needs none.
func (d Decision) Server() ident.ServerID { return d.profile.Server }

// Round returns the round in which the deciding answer came: 0 after the first
// send, k after k replays, one more than the policy's replays for the final
// interval.
func (d Decision) Round() int { return d.profile.Round }

// Elapsed returns the time from the first send to the decision.
func (d Decision) Elapsed() time.Duration { return d.profile.Elapsed }

// Profile returns how the decision came about: Server, Round and Elapsed again,
// and more.
func (d Decision) Profile() Profile { return d.profile }

// Resources returns the results of the resources in the request's order, in a
// new slice.
func (d Decision) Resources() []ResourceResult {
	if d.moreResources != nil {
		return append([]ResourceResult(nil), d.moreResources...)
	}
	return append([]ResourceResult(nil), d.inlineResources[:d.resources]...)
}

// Guards returns the results of the guards in the request's order, in a new
// slice.
func (d Decision) Guards() []GuardResult {
	if d.moreGuards != nil {
		return append([]GuardResult(nil), d.moreGuards...)
	}
	return append([]GuardResult(nil), d.inlineGuards[:d.guards]...)
}

// String says in one line whether the request was granted and, if not, each
// bucket and guard that is to blame.
func (d Decision) String() string {
	var s strings.Builder
	switch {
	case d.granted && d.resources+d.guards == 0:
		return "granted: nothing was asked"
	case d.granted:
		return fmt.Sprintf("granted by server %v %s after %v", d.profile.Server, d.profile.when(), d.profile.Elapsed.Round(time.Microsecond))
	case d.resources+d.guards == 0:
		return "no decision"
	}
	fmt.Fprintf(&s, "rejected by server %v %s after %v", d.profile.Server, d.profile.when(), d.profile.Elapsed.Round(time.Microsecond))
	for _, g := range d.Guards() {
		if !g.Passed {
			s.WriteString("; " + g.String())
		}
	}
	for _, r := range d.Resources() {
		if !r.Covered() {
			s.WriteString("; " + r.String())
		}
	}
	return s.String()
}

// ask notes what is asked, before there is an answer.
func (d *Decision) ask(resources []Resource, guards []Guard) {
	d.resources, d.guards = len(resources), len(guards)
	if d.resources > inlineResources {
		d.moreResources = make([]ResourceResult, d.resources)
	}
	if d.guards > inlineGuards {
		d.moreGuards = make([]GuardResult, d.guards)
	}
	for i, results := 0, d.resourceResults(); i < len(results); i++ {
		results[i].Resource = resources[i]
		results[i].earlier = earlier(resources, i)
	}
	for i, results := 0, d.guardResults(); i < len(results); i++ {
		results[i].Guard = guards[i]
	}
}

// answer fills in what a server said.
func (d *Decision) answer(c *core.Completion) {
	d.granted = c.Outcome == core.Granted
	d.profile = profile(c)
	resources, guards := d.resourceResults(), d.guardResults()
	for i, r := range c.Resources {
		resources[i].ActualRate, resources[i].Deficit = r.ActualRate, r.Deficit
	}
	for i, g := range c.Guards {
		guards[i].Latency, guards[i].Passed = time.Duration(g.Latency)*time.Millisecond, g.Passed
	}
}

func (d *Decision) resourceResults() []ResourceResult {
	if d.moreResources != nil {
		return d.moreResources
	}
	return d.inlineResources[:d.resources]
}

func (d *Decision) guardResults() []GuardResult {
	if d.moreGuards != nil {
		return d.moreGuards
	}
	return d.inlineGuards[:d.guards]
}
