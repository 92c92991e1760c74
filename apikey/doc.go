// Package apikey reads, issues and hides the API keys that r-clients and
// r-servers of one tenant share.
//
// A key is a Bech32 string that carries the tenant's key ID, the way its
// datagrams are authenticated, the secret for that, and the tenant's quotas
// ("API keys" in docs/protocol.md). Two formats are in use: format 1, which this
// package issues, and the legacy format, which is accepted only where the caller
// asks for it with [ParseAny].
//
// The three ways of authentication differ in what they are worth. AES encrypts
// and authenticates every datagram. Cookie sends the secret in clear, so whoever
// sees one datagram can forge every other. None lets anyone who can reach the
// port forge. Cookie and none authenticate nothing about a datagram's content.
//
// A [Key] never prints its secret: formatting it with any verb of package fmt,
// and encoding it as text, JSON, YAML or a log attribute, gives a redacted form
// such as "rl-aes(key_id=7)". [Key.Encode] is the only way to get the text that
// [Parse] reads. No error of this package repeats a key's text or a byte of its
// secret.
//
// Values of this package are immutable and safe for concurrent use.
package apikey
