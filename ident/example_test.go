package ident_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/ident"
)

func ExampleBucket() {
	// A hundred tokens in any second.
	fmt.Println(ident.Bucket("checkout", 1000, 100))
	// Output: f5cf3ad8b8406854b596ba3614f16eff
}

func ExampleTracker() {
	// Samples live 10 s, at most 100 count, and 5 are needed for an estimate.
	fmt.Println(ident.Tracker("checkout", 10_000, 100, 5))
	// Output: b1015fbb0feeae265186781ea579d423
}

func ExampleNewServerID() {
	older, err := ident.NewServerID(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	younger, err := ident.NewServerID(older.Start().Add(time.Hour), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(older.Label(), older.Start(), older.Older(younger))
	// Output: s-418557984768007 2026-08-01 12:00:00 +0000 UTC true
}

func ExampleParseTarget() {
	id, ok := ident.ParseTarget("S-418557984768007.rl.example.com.")
	fmt.Println(id, ok)
	_, ok = ident.ParseTarget("www.example.com.")
	fmt.Println(ok)
	// Output:
	// 418557984768007 true
	// false
}
