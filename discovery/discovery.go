package discovery

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Bounds on what one lookup returns. An answer with more is sorted and cut, so
// that the same records give the same result in whatever order they arrive.
const (
	MaxTargets = 256 // SRV records of one LookupSRV
	MaxAddrs   = 64  // addresses of one LookupAddrs, IPv4 before IPv6
)

// SRV is what a client needs of one SRV record. Priority and weight are not
// kept: docs/protocol.md, "Discovery", gives them no meaning.
type SRV struct {
	Target string // host name, lower case, with its trailing dot
	Port   uint16 // UDP port; 0 can occur and is for the caller to refuse
}

// Resolver answers the two questions of docs/protocol.md, "Discovery".
//
// Both methods take an absolute name, with or without the trailing dot, and are
// safe for concurrent use. The duration is the smallest TTL of all records that
// led to the answer, aliases (CNAME) included: at least one second when it is
// known, 0 when it is not. They return soon after ctx ends, with an error that
// wraps its cause. An answer that says there is nothing is [ErrNotFound]; every
// other error means that nobody could be asked, and names whom.
type Resolver interface {
	// LookupSRV returns the SRV records of name, sorted by target and port,
	// without duplicates, at most [MaxTargets].
	LookupSRV(ctx context.Context, name string) ([]SRV, time.Duration, error)
	// LookupAddrs returns the A and AAAA records of host, sorted, without
	// duplicates, at most [MaxAddrs]. When one of the two questions fails and
	// the other finds addresses, these are returned beside a *[PartialError],
	// with a TTL of one to ten seconds, so that the missing ones are soon asked
	// for again. The standard library's resolver (see [System]) hides that: it
	// gives what it found without an error.
	LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
}

// PartialError comes beside addresses: the host has these, and may have others of
// the family that could not be asked for. Whoever knew some may keep them.
type PartialError struct {
	Network string // "ip4" or "ip6": the family whose question failed
	Err     error  // why; never [ErrNotFound], which is an answer
}

// Error returns the reason, which names what was asked for.
func (e *PartialError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PartialError) Unwrap() error { return e.Err }

// ErrNotFound is wrapped by the error of a lookup whose answer is "nothing": the
// name does not exist (NXDOMAIN), or it has no record of the type asked for. The
// error's text says which, and who said so.
var ErrNotFound = errors.New("not found in DNS")
