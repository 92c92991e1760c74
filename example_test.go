package weir_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/server"
)

// startServer runs an r-server in this process, for the examples, and returns
// how a client reaches it. A program has a key from its environment and a Zone
// instead.
func startServer() (cfg weir.Config, stop func()) {
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 2000
	key, err := apikey.New(apikey.AuthAES, 7, quotas, rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.Config{
		Listen:  []string{"127.0.0.1:0"},
		Tenants: []server.Tenant{{Keys: []apikey.Key{key}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	nextMillisecond()
	waiting := policy.Default()
	waiting.Unit = 600 * time.Millisecond // for machines with better things to do
	cfg = weir.Config{Key: key, Servers: []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}}, Policy: waiting}
	return cfg, func() {
		cancel()
		<-ended
	}
}

func Example() {
	cfg, stop := startServer() // a program: weir.Config{Key: key, Zone: "rl.example.com"}
	defer stop()
	ctx := context.Background()

	client, err := weir.Dial(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	logins := weir.Bucket("login", 2, time.Hour) // at most 2 in any hour
	for range 3 {
		d, err := client.Acquire(ctx, weir.Request{Resources: []weir.Resource{logins.Take(1)}})
		switch {
		case err != nil:
			fmt.Println("no decision:", err)
		case !d.Granted():
			fmt.Println("rejected:", d.Resources()[0])
		default:
			fmt.Println("granted:", d.Resources()[0])
		}
	}
	// Output:
	// granted: bucket "login": covered (1 of 2 in 1h0m0s)
	// granted: bucket "login": covered (2 of 2 in 1h0m0s)
	// rejected: bucket "login": 1 of 1 tokens missing (2 of 2 in 1h0m0s)
}

// Several limits are decided as one: if the user's bucket is full, nothing is
// taken from the others.
func ExampleClient_Acquire() {
	cfg, stop := startServer()
	defer stop()
	client, err := weir.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	all := weir.Bucket("api", 1000, time.Minute)
	user := weir.Bucket("api/user/42", 10, time.Minute)
	d, err := client.Acquire(context.Background(), weir.Request{
		Resources: []weir.Resource{all.Take(50), user.Take(50)},
		Label:     "search",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted:", d.Granted())
	for _, r := range d.Resources() {
		fmt.Printf("%s: %d missing\n", r.Resource.Bucket.Name(), r.Deficit)
	}
	// Output:
	// granted: false
	// api: 0 missing
	// api/user/42: 40 missing
}

// Do asks, runs the work if it may, measures it and reports how long it took to
// the guard's tracker.
func ExampleClient_Do() {
	cfg, stop := startServer()
	defer stop()
	client, err := weir.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	database := weir.Tracker("database", weir.TrackerOptions{TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 5})
	admission := weir.Admission{Request: weir.Request{
		Resources: []weir.Resource{weir.Bucket("orders", 1, time.Hour).Take(1)},
		Guards:    []weir.Guard{database.Below(time.Minute)},
	}}
	for range 2 {
		_, err = client.Do(context.Background(), admission, func(context.Context) error {
			fmt.Println("working")
			return nil
		})
		switch {
		case errors.Is(err, weir.ErrRejected):
			fmt.Println("not now")
		case err != nil:
			fmt.Println("no decision, or the work's own error:", err)
		}
	}
	// Output:
	// working
	// not now
}

// A report is one datagram to each server; nothing answers it.
func ExampleClient_Report() {
	cfg, stop := startServer()
	defer stop()
	client, err := weir.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	inventory := weir.Tracker("inventory", weir.TrackerOptions{TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 5})
	start := time.Now()
	// … call the inventory …
	fmt.Println(client.Report(inventory.Took(time.Since(start))))
	// Output: <nil>
}

// A configuration error names the field.
func ExampleConfigError() {
	_, err := weir.New(weir.Config{})
	var bad *weir.ConfigError
	fmt.Println(errors.As(err, &bad), bad.Field)
	// Output: true Key
}

// Two programs mean the same bucket when they make it alike.
func ExampleBucket() {
	fmt.Println(weir.Bucket("checkout", 100, time.Second).ID())
	// Output: f5cf3ad8b8406854b596ba3614f16eff
}
