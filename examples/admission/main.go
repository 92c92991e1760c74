// Admission runs work only while what it depends on is fast enough: a guard on the
// latency that earlier work reported, and a bucket. Do asks, runs, measures and
// reports.
//
//	WEIR_KEY=… WEIR_DOMAIN=c-7.rl.example.com go run ./examples/admission
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
)

// inventory learns how long the inventory service takes: the last 32 observations of
// the last 10 seconds, of which there must be 5. More than 32 take a key whose quota
// latency-buffer-size is larger.
var inventory = weir.Tracker("inventory", weir.TrackerOptions{
	TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 5,
})

// orders is at most 50 orders in any second, and none while the inventory service
// takes 100 ms or more.
var orders = weir.Request{
	Resources: []weir.Resource{weir.Bucket("orders", 50, time.Second).Take(1)},
	Guards:    []weir.Guard{inventory.Below(100 * time.Millisecond)},
}

// order places one order with the inventory service, reserve.
func order(ctx context.Context, client *weir.Client, reserve func(context.Context) error) string {
	_, err := client.Do(ctx, weir.Admission{Request: orders}, reserve)
	var rejected *weir.RejectedError
	switch {
	case err == nil:
		return "ordered"
	case errors.As(err, &rejected) && len(rejected.Decision.Guards()) > 0 && !rejected.Decision.Guards()[0].Passed:
		return "refused: the inventory service is too slow"
	case errors.Is(err, weir.ErrRejected):
		return "refused: too many orders"
	default:
		return "failed: " + err.Error() // the work's own error, or no decision
	}
}

func main() {
	client, err := newClient(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		fmt.Println(order(context.Background(), client, func(context.Context) error { return nil }))
	}
}

func newClient(ctx context.Context) (*weir.Client, error) {
	key, err := apikey.Parse(os.Getenv("WEIR_KEY"))
	if err != nil {
		return nil, err
	}
	cfg := weir.Config{Key: key, Domain: os.Getenv("WEIR_DOMAIN")}
	if cfg.Policy, err = policy.Parse(os.Getenv("WEIR_POLICY")); err != nil {
		return nil, err
	}
	if addr := os.Getenv("WEIR_RESOLVER"); addr != "" {
		if cfg.Resolver, err = discovery.NewDNS(addr); err != nil {
			return nil, err
		}
	}
	return weir.Dial(ctx, cfg)
}
