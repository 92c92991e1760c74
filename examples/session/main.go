// Session is a script that mails one customer after the other, while the limit on
// mail grants it, and waits when it does not: the session goes into each step and
// comes back out of it.
//
//	WEIR_KEY=… WEIR_DOMAIN=c-7.rl.example.com go run ./examples/session
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/session"
)

// mails is at most 3 mails in any half second, of all scripts together.
var mails = weir.Bucket("mails", 3, 500*time.Millisecond)

// pause is how long the script waits after a rejection.
const pause = 100 * time.Millisecond

// deliver asks until it may send, and sends. It gives back the session whatever
// happens, as every call does that it makes.
func deliver(ctx context.Context, s session.State, key apikey.Key, to string) (session.State, error) {
	for {
		var d weir.Decision
		var err error
		s, d, err = session.Execute(ctx, s, key, weir.Request{Resources: []weir.Resource{mails.Take(1)}})
		if err != nil {
			return s, err // no decision: this script prefers no mail to too many
		}
		if d.Granted() {
			fmt.Println("mail to", to)
			return s, nil
		}
		time.Sleep(pause)
	}
}

func main() {
	key, cfg, err := environment()
	if err != nil {
		log.Fatal(err)
	}
	s, err := session.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _, _ = session.Close(s) }()
	for _, to := range []string{"Ada", "Barbara", "Grace", "Radia", "Sophie"} {
		if s, err = deliver(context.Background(), s, key, to); err != nil {
			fmt.Println("no mail to", to+":", err)
		}
	}
	fmt.Println("had to wait:", s.Stats().Outcomes[core.Rejected] > 0)
}

func environment() (apikey.Key, session.Config, error) {
	cfg := session.Config{Domain: os.Getenv("WEIR_DOMAIN")}
	key, err := apikey.Parse(os.Getenv("WEIR_KEY"))
	if err != nil {
		return key, cfg, err
	}
	if cfg.Policy, err = policy.Parse(os.Getenv("WEIR_POLICY")); err != nil {
		return key, cfg, err
	}
	if resolver := os.Getenv("WEIR_RESOLVER"); resolver != "" { // without one the machine's is asked
		cfg.Resolver, err = discovery.NewDNS(resolver)
	}
	return key, cfg, err
}
