// Package discovery finds r-servers: SRV records, then the A and AAAA records of
// their targets, with the TTLs that say how long an answer may be used.
//
// A [Resolver] answers the two questions a client asks. [System] asks the servers
// of the machine's resolv.conf, [NewDNS] asks servers that the caller names.
// Names are absolute: no search list and no ndots apply, so that a client's
// domain can never be completed to somebody else's.
//
// [CheckZone], [CheckDomain], [Domain] and [ServiceName] make the names, and
// [ParseServer] reads a member that is configured by hand where there is no DNS.
//
// DNS is not authenticated. What an answer can cost is bounded (see
// [MaxTargets] and [MaxAddrs]); what it may decide is for the caller to bound,
// which the package core does. The rules are in docs/protocol.md, "Discovery".
package discovery
