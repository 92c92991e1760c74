package core

import (
	"net/netip"
	"strconv"
	"time"
)

// LookupID names a lookup that the core wanted, never 0 and never used twice.
type LookupID uint64

// LookupKind is what is looked up. The zero value is none.
type LookupKind uint8

// The kinds of lookups.
const (
	LookupSRV   LookupKind = 1 + iota // SRV records, answered with HandleSRV
	LookupAddrs                       // A and AAAA records, answered with HandleAddrs
)

// String returns "SRV" or "addresses".
func (k LookupKind) String() string {
	switch k {
	case LookupSRV:
		return "SRV"
	case LookupAddrs:
		return "addresses"
	}
	return "LookupKind(" + strconv.Itoa(int(k)) + ")"
}

// Lookup is a DNS lookup that the core wants done.
type Lookup struct {
	ID   LookupID   // for HandleSRV or HandleAddrs
	Kind LookupKind // which of them
	Name string     // without a trailing dot
}

// SRV is one SRV record. Priority and weight are ignored.
type SRV struct {
	Target string // the host's name, with or without a trailing dot
	Port   uint16 // where the server listens
}

// SRVAnswer is the answer to a [LookupSRV]. An error, or no records, fails the
// refresh.
type SRVAnswer struct {
	Records []SRV         // in any order
	TTL     time.Duration // the smallest of the records, 0 = unknown
	Err     error         // why there is no answer
}

// AddrAnswer is the answer to a [LookupAddrs]. An error, or no address, leaves a
// server with the addresses that it had.
type AddrAnswer struct {
	Addrs []netip.Addr  // in any order
	TTL   time.Duration // the smallest of the records, 0 = unknown
	Err   error         // why there is no answer
	// The question for that family's addresses failed, while Addrs has those of
	// the other: a server for which none of the family is found keeps the ones that
	// it had. It is no failure of the refresh; give a short TTL, to ask again soon.
	FailedIPv4, FailedIPv6 bool
}

// Discovered says what a refresh made of what DNS said.
type Discovered struct {
	Servers, Endpoints int     // of the membership
	Skipped            Skipped // what the refresh did not take
}

// Skipped counts what was not taken, and why.
type Skipped struct {
	Targets   uint64 // SRV targets whose first label names no server, and port 0
	Future    uint64 // SRV targets of servers that start more than a minute from now
	Failed    uint64 // targets whose addresses could not be looked up
	Addresses uint64 // unspecified, multicast and broadcast addresses
	Excess    uint64 // servers, targets and addresses over the limits
}

// add sums up.
func (s *Skipped) add(other Skipped) {
	s.Targets += other.Targets
	s.Future += other.Future
	s.Failed += other.Failed
	s.Addresses += other.Addresses
	s.Excess += other.Excess
}
