package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
)

func main() {
	client, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	srv := &http.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           &limiter{client: client, next: hello, failOpen: true},
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Print("http://", srv.Addr)
	log.Print(srv.ListenAndServe())
}

// newClient reads the key, where the servers are and how long to wait for them from
// the environment. It does not wait for servers: requests that come before them do.
func newClient() (*weir.Client, error) {
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
	return weir.New(cfg)
}
