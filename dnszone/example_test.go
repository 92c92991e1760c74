package dnszone_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/dnszone"
)

// A zone with one server, found by a resolver that asks it.
func Example() {
	zone, err := dnszone.New(dnszone.Config{Zone: "rl.test"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = zone.SetMembers([]dnszone.Member{{ID: 1015809, Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:29292")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := dnszone.Listen("127.0.0.1:0", zone, dnszone.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()

	resolver, err := discovery.NewDNS(server.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	records, ttl, err := resolver.LookupSRV(ctx, discovery.ServiceName(discovery.Domain("rl.test", 7)))
	fmt.Println(records, ttl, err)
	addrs, ttl, err := resolver.LookupAddrs(ctx, "s-1015809.rl.test")
	fmt.Println(addrs, ttl, err)

	cancel()
	fmt.Println(<-ended)
	// Output:
	// [{s-1015809.rl.test. 29292}] 5s <nil>
	// [192.0.2.1] 5s <nil>
	// <nil>
}

func ExampleZone_SetMembers() {
	zone, err := dnszone.New(dnszone.Config{Zone: "rl.test"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serial", zone.Serial())
	members := []dnszone.Member{{ID: 5, Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:29292")}}}
	fmt.Println(zone.SetMembers(members), "serial", zone.Serial())
	fmt.Println(zone.SetMembers(members), "serial", zone.Serial()) // the same: no change
	members[0].Addrs[0] = netip.MustParseAddrPort("0.0.0.0:29292")
	fmt.Println(zone.SetMembers(members))
	// Output:
	// serial 1
	// <nil> serial 2
	// <nil> serial 2
	// dnszone: member 5: 0.0.0.0:29292 is the unspecified address; give one that clients can reach
}
