package server

// reason is why a datagram was dropped before an engine saw it. What engines drop has
// its reason from limiter.Verdict; docs/server.md, "Dropped datagrams", lists both.
type reason uint8

const (
	dropSource     reason = iota // from no port or no address that an answer could go to
	dropTooLong                  // more than 1200 bytes
	dropEnvelope                 // tenant header or authentication TLV malformed
	dropUnknownKey               // no tenant has the key ID
	dropMode                     // authenticated in a mode that none of the tenant's keys has
	dropAuth                     // not authentic under any of the tenant's keys
	dropMaxRate                  // more datagrams a second than the tenant may send
	dropMgmt                     // the tenant management flag is set
	dropMalformed                // PDU malformed
	dropKind                     // a PDU that only servers send
	dropLate                     // waited for us longer than its dedup TTL
	dropAnswer                   // decided, but the answer could not be built
	reasonCount
)

// reasonNames are the values of the metrics' label `reason`.
var reasonNames = [reasonCount]string{
	dropSource:     "source",
	dropTooLong:    "too_long",
	dropEnvelope:   "envelope",
	dropUnknownKey: "unknown_key",
	dropMode:       "mode",
	dropAuth:       "auth",
	dropMaxRate:    "max_rate",
	dropMgmt:       "mgmt",
	dropMalformed:  "malformed",
	dropKind:       "kind",
	dropLate:       "late",
	dropAnswer:     "answer",
}

func (r reason) String() string { return reasonNames[r] }

// tenantless reports whether a datagram dropped for this reason is nobody's yet.
func (r reason) tenantless() bool { return r <= dropUnknownKey }
