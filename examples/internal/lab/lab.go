// Package lab gives the examples an r-server to talk to: in the same process, on
// loopback ports that the system chooses, found through real DNS.
package lab

import (
	"context"
	"crypto/rand"
	"os"
	"runtime"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/server"
)

// zone is the DNS zone of the lab's server.
const zone = "rl.test"

// patience is a policy that gives a busy machine 1.5 s for a decision, where 60 ms
// are the default.
const patience = "unit=500ms"

// Start runs a server with one tenant and puts what a client needs into the
// environment: WEIR_KEY, WEIR_DOMAIN, WEIR_RESOLVER, and WEIR_POLICY. The function
// that it returns ends the server. It panics on errors: an example has nobody to
// tell.
func Start() (stop func()) { return StartWithRoom(apikey.DefaultQuotas().RateBuckets) }

// StartWithRoom is Start with a key that has room for so many buckets, a power of
// two.
func StartWithRoom(buckets uint32) (stop func()) {
	quotas := apikey.DefaultQuotas()
	quotas.RateBuckets = buckets
	quotas.DedupTTL = 2000 // ms; the horizon of the policy must be within it
	key, err := apikey.New(apikey.AuthAES, 7, quotas, rand.Reader)
	check(err)
	s, err := server.New(server.Config{
		Listen:  []string{"127.0.0.1:0"},
		Tenants: []server.Tenant{{Name: "lab", Keys: []apikey.Key{key}}},
		DNS:     "127.0.0.1:0",
		Zone:    zone,
		Drain:   server.NoDrain,
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	// A server takes no request with a timestamp of the millisecond it started in.
	for started := time.Now().UnixMilli(); time.Now().UnixMilli() == started; {
		runtime.Gosched()
	}
	check(os.Setenv("WEIR_KEY", key.Encode()))
	check(os.Setenv("WEIR_DOMAIN", "c-7."+zone))
	check(os.Setenv("WEIR_RESOLVER", s.DNSAddr().String()))
	check(os.Setenv("WEIR_POLICY", patience))
	return func() {
		cancel()
		check(<-done)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
