package discovery_test

import (
	"fmt"

	"github.com/weirhq/weir/discovery"
)

func ExampleDomain() {
	domain := discovery.Domain("rl.example.com", 7)
	fmt.Println(domain)
	fmt.Println(discovery.ServiceName(domain))
	// Output:
	// c-7.rl.example.com
	// _ratelimitly._udp.c-7.rl.example.com
}

func ExampleParseServer() {
	s, err := discovery.ParseServer("1015809@192.0.2.1:29292,[2001:db8::1]:29292")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.ID, "at", s.Addrs)
	_, err = discovery.ParseServer("1015809@rl1.example.com:29292")
	fmt.Println(err)
	// Output:
	// 1015809 at [192.0.2.1:29292 [2001:db8::1]:29292]
	// discovery: server "1015809@rl1.example.com:29292": "rl1.example.com:29292" is not an IP address with a port, such as 192.0.2.1:29292 or [2001:db8::1]:29292
}
