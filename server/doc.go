// Package server is the r-server: it answers resource requests and takes in latency
// reports over UDP, for any number of tenants. docs/server.md describes it for those who
// run one; this package is what `weir serve` runs.
//
//	s, err := server.New(server.Config{
//		Listen:      []string{"192.0.2.7:29292"},
//		TenantsFile: "tenants.yaml",
//		Admin:       "127.0.0.1:9292",
//	})
//	…
//	err = s.Run(ctx) // until ctx ends, and then for as long as Config.Drain says
//
// One [Server] is one server ID, new at every start, and per tenant one engine of package
// limiter, over all its addresses: one scope in which limits hold and repeats are known.
// It knows of no other server; clients ask several.
//
// A datagram is answered if it is authentic under a key of its tenant, fresh, well formed
// and within the tenant's quotas. Any other is dropped in silence, and the reason is
// counted: on the wire, a wrong key, a wrong clock and a dead server look the same.
//
// A [Server] takes no part in the decisions: it moves bytes, keeps the tenants, and hands
// the time to the engines.
package server
