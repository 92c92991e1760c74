package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/examples/internal/lab"
)

func Example() {
	defer lab.Start()()
	main()
	// Output:
	// ordered
	// ordered
	// ordered
}

// What others report about the service counts here too.
func Example_slow() {
	defer lab.Start()()
	client, err := newClient(context.Background())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	reserve := func(context.Context) error { return nil }
	fmt.Println(order(context.Background(), client, reserve))
	fmt.Println(order(context.Background(), client, func(context.Context) error { return errors.New("out of stock") }))
	for range 20 {
		if err := client.Report(inventory.Took(250 * time.Millisecond)); err != nil {
			panic(err)
		}
	}
	// A report has no answer: ask until the server has taken enough of them in.
	estimate := weir.Request{Guards: []weir.Guard{inventory.Below(100 * time.Millisecond)}}
	for tripped := false; !tripped; {
		d, err := client.Acquire(context.Background(), estimate)
		if err != nil {
			panic(err)
		}
		tripped = !d.Granted()
	}
	fmt.Println(order(context.Background(), client, reserve))
	// Output:
	// ordered
	// failed: out of stock
	// refused: the inventory service is too slow
}
