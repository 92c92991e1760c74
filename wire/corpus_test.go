package wire

import (
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/vectors"
)

// propertyCredentials holds a credential of each mode for properties and fuzz targets, which have
// no testing.TB at hand where they need one.
var propertyCredentials = map[apikey.Auth]*Credential{}

func TestMain(m *testing.M) {
	for _, auth := range modes {
		k, err := apikey.New(auth, 7, apikey.DefaultQuotas(), &counting{byte(auth)})
		if err != nil {
			panic(err)
		}
		if propertyCredentials[auth], err = NewCredential(k); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// vectorCredentials returns a credential for every key that a vector uses.
func vectorCredentials(tb testing.TB) []*Credential {
	tb.Helper()
	var cs []*Credential
	seen := map[string]bool{}
	add := func(key string) {
		if !seen[key] {
			seen[key] = true
			cs = append(cs, credentialFor(tb, key))
		}
	}
	for _, v := range vectors.Requests(tb) {
		add(v.Key)
	}
	for _, v := range vectors.Reports(tb) {
		add(v.Key)
	}
	for _, v := range vectors.Responses(tb) {
		add(v.Key)
	}
	return cs
}
