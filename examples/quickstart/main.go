// Quickstart asks once for one token.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
)

func main() {
	key, err := apikey.Parse(os.Getenv("WEIR_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	resolver, err := discovery.NewDNS(os.Getenv("WEIR_RESOLVER")) // without a Resolver the machine's is asked
	if err != nil {
		log.Fatal(err)
	}
	client, err := weir.Dial(context.Background(), weir.Config{
		Key: key, Domain: os.Getenv("WEIR_DOMAIN"), Resolver: resolver,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	checkout := weir.Bucket("checkout", 100, time.Second) // at most 100 in any second
	d, err := client.Acquire(context.Background(), weir.Request{
		Resources: []weir.Resource{checkout.Take(1)},
	})
	switch {
	case err != nil:
		fmt.Println("no decision:", err) // let it through or not: your choice
	case !d.Granted():
		fmt.Println("too many")
	default:
		fmt.Println("granted")
	}
}
