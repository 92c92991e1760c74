// Package weir asks r-servers for admission: may this request take its tokens,
// now, and are the things that it depends on fast enough? One datagram goes out
// to every server of the tenant, one answer decides.
//
//	key, err := apikey.Parse(os.Getenv("WEIR_KEY"))
//	client, err := weir.Dial(ctx, weir.Config{Key: key, Zone: "rl.example.com"})
//	defer client.Close()
//
//	checkout := weir.Bucket("checkout", 100, time.Second) // at most 100 in any second
//
//	d, err := client.Acquire(ctx, weir.Request{Resources: []weir.Resource{checkout.Take(1)}})
//	switch {
//	case err != nil:   // no decision: let it through or not, the caller's choice
//	case !d.Granted(): // too many; d says which bucket or guard is to blame
//	default:           // go ahead
//	}
//
// All resources and guards of a request are decided as one: granted, with every
// token consumed, or rejected, with none. A guard refuses work while a
// [LatencyTracker] is too slow; trackers learn from [Client.Report]. [Client.Do]
// does it all around a function: ask, run, measure, report.
//
// An error is neither a grant nor a rejection. It comes after at most the
// policy's horizon (60 ms by default, docs/policy.md), and the errors of this
// package say what happened. A [Client] is safe for any number of goroutines.
package weir
