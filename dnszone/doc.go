// Package dnszone is a small authoritative DNS server for one zone of one's own:
// the one in which r-clients find r-servers.
//
// A [Zone] is the record set and answers questions; it does no I/O. A [Server]
// puts it on UDP and TCP. [LoadMembers] reads the members from a file, [Follow]
// again whenever the file changes.
//
// In a zone rl.example.com the SRV records of _ratelimitly._udp.c-7.rl.example.com
// list the servers for the API key with ID 7, as s-<server id>.rl.example.com,
// whose A and AAAA records are their addresses (docs/protocol.md, "Discovery").
// There is a SOA and an NS record at the apex and nothing else. ANY gets a HINFO
// record that says to ask for what one wants (RFC 8482); zone transfers, other
// classes and other zones are refused; updates and notifications are not
// implemented; there is no DNSSEC.
package dnszone
