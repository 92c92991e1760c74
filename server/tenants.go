package server

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
)

// maxKeys is how many keys a tenant may have at once. Every one of them costs an
// attempt to open what none of them opens.
const maxKeys = 4

// maxName is the longest tenant name in bytes.
const maxName = 64

// tenantError is what is wrong with one of a list of tenants. Where the list comes from
// a file, the indexes lead to the place in it.
type tenantError struct {
	tenant int // index
	key    int // index, or -1 if no single key is at fault
	text   string
}

func (e *tenantError) Error() string {
	if e.key >= 0 {
		return fmt.Sprintf("server: tenant %d, key %d: %s", e.tenant+1, e.key+1, e.text)
	}
	return fmt.Sprintf("server: tenant %d: %s", e.tenant+1, e.text)
}

// equal reports whether two tenants are the same in everything.
func (t *Tenant) equal(o *Tenant) bool {
	return slices.EqualFunc(t.Keys, o.Keys, apikey.Key.Equal) && t.Name == o.Name && t.Estimator == o.Estimator &&
		t.NoPacing == o.NoPacing && t.Shadow == o.Shadow && t.MaxRate == o.MaxRate && t.InsecureAuth == o.InsecureAuth
}

// checkTenants checks tenants, alone and against each other, and gives those without a
// name their key ID for one. exposed is an address that other machines can reach, or
// the zero AddrPort.
func checkTenants(tenants []Tenant, exposed netip.AddrPort) *tenantError {
	ids := make(map[uint64]int, len(tenants))
	names := make(map[string]int, len(tenants))
	for i := range tenants {
		t := &tenants[i]
		if err := checkKeys(i, t, exposed); err != nil {
			return err
		}
		id := t.Keys[0].ID()
		if other, dup := ids[id]; dup {
			return &tenantError{i, 0, fmt.Sprintf("tenant %d (%s) has a key with the key ID %d too; a key ID belongs to one tenant: put keys that replace each other under one tenant's `keys`, or issue one with another ID",
				other+1, tenants[other].Name, id)}
		}
		ids[id] = i
		if t.Name == "" {
			t.Name = strconv.FormatUint(id, 10)
		}
		if text := badName(t.Name); text != "" {
			return &tenantError{i, -1, text}
		}
		if other, dup := names[t.Name]; dup {
			return &tenantError{i, -1, fmt.Sprintf("tenant %d has the name %q too; metrics could not tell them apart", other+1, t.Name)}
		}
		names[t.Name] = i
		if !validEstimator(t.Estimator) {
			return &tenantError{i, -1, "the estimator is none of " + estimatorNames}
		}
		if t.MaxRate < 0 || t.MaxRate > maxMaxRate {
			return &tenantError{i, -1, fmt.Sprintf("the maximum rate %d is not from 1 to %d datagrams a second, or 0 for none", t.MaxRate, maxMaxRate)}
		}
	}
	return nil
}

// checkKeys checks the keys of tenant i.
func checkKeys(i int, t *Tenant, exposed netip.AddrPort) *tenantError {
	if len(t.Keys) == 0 || len(t.Keys) > maxKeys {
		return &tenantError{i, -1, fmt.Sprintf("there are %d keys; a tenant has 1 to %d", len(t.Keys), maxKeys)}
	}
	for n, k := range t.Keys {
		if k.IsZero() {
			return &tenantError{i, n, "the key is zero; parse or make one with package apikey"}
		}
		if k.ID() != t.Keys[0].ID() {
			return &tenantError{i, n, fmt.Sprintf("its key ID is %d, but that of the tenant's first key is %d; keys that replace each other share their ID", k.ID(), t.Keys[0].ID())}
		}
		for _, earlier := range t.Keys[:n] {
			if k.Equal(earlier) {
				return &tenantError{i, n, "the same key is there twice"}
			}
		}
		if exposed.IsValid() && !t.InsecureAuth && k.Auth() != apikey.AuthAES {
			return &tenantError{i, n, fmt.Sprintf("a key in %v mode can be forged by %s, and %v is open to other machines; use an aes key, listen on a loopback address, or set insecure_auth: true on this tenant",
				k.Auth(), forger(k.Auth()), exposed)}
		}
	}
	return nil
}

func forger(a apikey.Auth) string {
	if a == apikey.AuthCookie {
		return "whoever sees one datagram"
	}
	return "whoever reaches the port"
}

// badName says what makes a name unfit to be shown, or "".
func badName(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("the name has %d bytes, more than %d", len(name), maxName)
	}
	for _, r := range name {
		// Invalid UTF-8 reads as the replacement character, which nobody needs in a name.
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return "the name holds characters that do not print"
		}
	}
	return ""
}

func validEstimator(e limiter.Estimator) bool {
	_, err := limiter.ParseEstimator(e.String())
	return err == nil
}

// estimatorNames lists the estimators for a message.
const estimatorNames = "p50, min, p90, p99 and mean"
