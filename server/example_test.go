package server_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/server"
)

// A server for one tenant, without a file, that ends when its context does.
func Example() {
	key, err := apikey.Parse("rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys")
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.Config{
		Listen:  []string{"127.0.0.1:0"},
		Tenants: []server.Tenant{{Keys: []apikey.Key{key}, Name: "shop"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()

	fmt.Println("listening on", s.Addrs()[0].Addr())
	cancel()
	fmt.Println("ended with", <-ended)
	// Output:
	// listening on 127.0.0.1
	// ended with <nil>
}

// What is wrong with a tenants file is told with its place, and without the keys in it.
func ExampleNew_brokenFile() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "tenants.yaml")
	text := "tenants:\n  - key: rl-none1qyyqwps9qspsyq2sk8e0sfdp3yz\n    name: shop\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	_, err = server.New(server.Config{Listen: []string{"127.0.0.1:0"}, TenantsFile: path})
	os.RemoveAll(dir)
	fmt.Println(strings.Replace(err.Error(), dir+string(filepath.Separator), "", 1))
	// Output:
	// server: tenants.yaml:2:10: invalid key: the checksum is wrong: a character was changed, lost or added
}

// Tenants that come from elsewhere than a file are replaced as a whole. Those who stay
// keep their state.
func ExampleServer_SetTenants() {
	tenant := func(id uint64, name string) server.Tenant {
		key, err := apikey.New(apikey.AuthAES, id, apikey.DefaultQuotas(), strings.NewReader(strings.Repeat("secret..", 4)))
		if err != nil {
			log.Fatal(err)
		}
		return server.Tenant{Keys: []apikey.Key{key}, Name: name}
	}
	s, err := server.New(server.Config{Listen: []string{"127.0.0.1:0"}, Tenants: []server.Tenant{tenant(7, "shop")}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.SetTenants([]server.Tenant{tenant(7, "shop"), tenant(8, "search")}))
	fmt.Println(s.SetTenants([]server.Tenant{tenant(7, "shop"), tenant(7, "search")}))
	// Output:
	// <nil>
	// server: tenant 2, key 1: tenant 1 (shop) has a key with the key ID 7 too; a key ID belongs to one tenant: put keys that replace each other under one tenant's `keys`, or issue one with another ID
}
