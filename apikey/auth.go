package apikey

import (
	"fmt"
	"strconv"
)

// Auth says how the datagrams of a tenant are authenticated ("Authentication"
// in docs/protocol.md). The zero value is no mode and always an error.
type Auth uint8

const (
	// AuthNone authenticates nothing: anyone who can reach the port can forge.
	AuthNone Auth = 1
	// AuthCookie sends the secret in clear in every datagram: whoever sees one
	// can forge.
	AuthCookie Auth = 2
	// AuthAES seals every datagram with AES-256-GCM.
	AuthAES Auth = 3
)

// String returns "none", "cookie" or "aes", or "Auth(n)" for another value.
func (a Auth) String() string {
	switch a {
	case AuthNone:
		return "none"
	case AuthCookie:
		return "cookie"
	case AuthAES:
		return "aes"
	}
	return "Auth(" + strconv.Itoa(int(a)) + ")"
}

// ParseAuth reads the names that [Auth.String] gives to the three modes, in
// lower case.
func ParseAuth(s string) (Auth, error) {
	for _, a := range [...]Auth{AuthNone, AuthCookie, AuthAES} {
		if s == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("apikey: %q is no authentication mode; there are none, cookie and aes", s)
}

func (a Auth) valid() bool {
	return a >= AuthNone && a <= AuthAES
}

// prefix is the human-readable part of a key's Bech32 string.
func (a Auth) prefix() string {
	return "rl-" + a.String()
}
