package session_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"runtime"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/server"
	"github.com/weirhq/weir/session"
)

// startServer runs an r-server in this process, for the example, and returns how
// a session reaches it. A program has a Zone instead.
func startServer() (key apikey.Key, cfg session.Config, stop func()) {
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 2000
	key, err := apikey.New(apikey.AuthAES, 7, quotas, rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.Config{
		Listen:  []string{"127.0.0.1:0"},
		Tenants: []server.Tenant{{Name: "example", Keys: []apikey.Key{key}}},
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
	cfg = session.Config{Servers: []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}}, Policy: waiting}
	return key, cfg, func() {
		cancel()
		<-ended
	}
}

// nextMillisecond returns when the wall clock shows another millisecond: a server
// takes what is dated at or before its start for a replay.
func nextMillisecond() {
	for start := time.Now().UnixMilli(); time.Now().UnixMilli() == start; {
		runtime.Gosched()
	}
}

// The state goes into every call, and the next one comes out.
func Example() {
	key, cfg, stop := startServer() // a program: session.Config{Zone: "rl.example.com"}
	defer stop()
	ctx := context.Background()

	first, err := session.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	logins := weir.Bucket("login", 2, time.Hour) // at most 2 in any hour
	one := weir.Request{Resources: []weir.Resource{logins.Take(1)}}
	s := first
	for range 3 {
		var d weir.Decision
		if s, d, err = session.Execute(ctx, s, key, one); err != nil {
			fmt.Println("no decision:", err)
			continue
		}
		fmt.Println(d.Granted(), d.Resources()[0])
	}
	if _, _, err = session.Execute(ctx, first, key, one); errors.Is(err, session.ErrSpent) {
		fmt.Println("a state is used once")
	}
	if s, err = session.Close(s); err != nil {
		fmt.Println(err)
	}
	if _, _, err = session.Execute(ctx, s, key, one); errors.Is(err, weir.ErrClosed) {
		fmt.Println("closed for good")
	}
	// Output:
	// true bucket "login": covered (1 of 2 in 1h0m0s)
	// true bucket "login": covered (2 of 2 in 1h0m0s)
	// false bucket "login": 1 of 1 tokens missing (2 of 2 in 1h0m0s)
	// a state is used once
	// closed for good
}
