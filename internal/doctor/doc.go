// Package doctor finds out why an r-client gets no decision, which its servers
// never say: what they do not authenticate, or find stale, they drop in silence.
//
// [Run] looks up the servers as a client would, asks each of their addresses by
// itself with requests for zero tokens, which consume and create nothing, and
// examines what is silent further: with stamps of other times, with a shorter
// dedup TTL, and on a connected socket, which hears of ICMP errors. Then it asks
// all of them as a client with the given policy. The findings are a [Report];
// [Write] shows it to a person.
//
// Sending is bounded: an address that answers gets about ten datagrams, a silent
// one a few hundred of about a hundred bytes, once.
package doctor
