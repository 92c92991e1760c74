package discovery

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestSystemFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nameserver 192.0.2.1\nnameserver nonsense\nnameserver fe80::1%eth0\nsearch corp.example\noptions ndots:5 timeout:3 attempts:4\n")
	got, err := fromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := got.(*systemResolver)
	want := &dnsResolver{servers: []string{"192.0.2.1:53", "[fe80::1%eth0]:53"}, timeout: 3 * time.Second, attempts: 4}
	if cur := r.resolver(); !slices.Equal(cur.servers, want.servers) || cur.timeout != want.timeout || cur.attempts != want.attempts {
		t.Fatalf("read as %+v", cur)
	}

	write("nameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nnameserver 4.4.4.4\noptions timeout:9999 attempts:9999")
	if cur := r.resolver(); len(cur.servers) != 3 || cur.timeout != maxTimeout || cur.attempts != maxAttempts {
		t.Fatalf("read anew as %+v", cur)
	}
	write("")
	if cur := r.resolver(); !slices.Equal(cur.servers, []string{"127.0.0.1:53", "[::1]:53"}) {
		t.Fatalf("an empty file reads as %+v", cur)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if cur := r.resolver(); len(cur.servers) != 2 {
		t.Fatalf("without the file: %+v", cur)
	}
}

func TestSystemWithoutFile(t *testing.T) {
	dir := t.TempDir()
	r, err := fromFile(filepath.Join(dir, "absent"))
	if _, ok := r.(netResolver); !ok || err != nil {
		t.Fatalf("got %T, %v", r, err)
	}
	if _, err := fromFile(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Fatalf("a directory gives %v", err)
	}
	if _, err := System(); err != nil {
		t.Fatal(err)
	}
}

func TestSystemLookups(t *testing.T) {
	s := &systemResolver{path: filepath.Join(t.TempDir(), "gone"), current: resolverAt(fakeServer(t, answering(everything)))}
	lookEverythingUp(t, s, 5*time.Second)
}

func TestStandardLibraryFallback(t *testing.T) {
	addr := fakeServer(t, answering(everything))
	lookEverythingUp(t, netResolver{through(addr)}, 0)
}

// through is a standard resolver that asks the server at addr, whatever the
// machine's configuration says.
func through(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
}

func everything(q dns.Question) (int, []string, []string) {
	switch {
	case q.Name == "none.test.":
		return dns.RcodeNameError, nil, []string{soa}
	case q.Qtype == dns.TypeSRV && q.Name == "off.test.":
		return 0, []string{q.Name + " 5 IN SRV 0 0 0 ."}, nil
	case q.Qtype == dns.TypeSRV:
		return 0, []string{q.Name + " 5 IN SRV 0 0 2 S-2.test.", q.Name + " 5 IN SRV 0 0 1 s-1.test."}, nil
	case q.Qtype == dns.TypeA:
		return 0, []string{q.Name + " 5 IN A 192.0.2.1"}, nil
	default:
		return 0, []string{q.Name + " 5 IN AAAA 2001:db8::1"}, nil
	}
}

func lookEverythingUp(t *testing.T, r Resolver, ttl time.Duration) {
	t.Helper()
	srv, got, err := r.LookupSRV(t.Context(), "x.test")
	if err != nil || !slices.Equal(srv, []SRV{{"s-1.test.", 1}, {"s-2.test.", 2}}) || got != ttl {
		t.Errorf("SRV: %v, %v, %v", srv, got, err)
	}
	addrs, got, err := r.LookupAddrs(t.Context(), "x.test")
	if err != nil || text(addrs) != "192.0.2.1 2001:db8::1" || got != ttl {
		t.Errorf("addresses: %v, %v, %v", addrs, got, err)
	}
	_, _, err = r.LookupSRV(t.Context(), "none.test")
	checkErr(t, err, ErrNotFound, "SRV none.test")
	_, _, err = r.LookupAddrs(t.Context(), "none.test")
	checkErr(t, err, ErrNotFound, "none.test")
	_, _, err = r.LookupSRV(t.Context(), "off.test")
	checkErr(t, err, ErrNotFound, "off.test")
}

func TestStandardLibraryFailures(t *testing.T) {
	stuck := make(chan struct{}) // a lookup that heeds nothing until the test ends
	defer close(stuck)
	ctx, cancel := context.WithCancel(t.Context())
	r := netResolver{&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		cancel()
		<-stuck
		return nil, errDial
	}}}
	_, _, err := r.LookupSRV(ctx, "x.test")
	checkErr(t, err, context.Canceled, "SRV x.test", "given up")
	_, _, err = r.LookupAddrs(ctx, "x.test")
	checkErr(t, err, context.Canceled)

	r = netResolver{&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errDial }}}
	_, _, err = r.LookupSRV(t.Context(), "x.test")
	if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "SRV x.test") {
		t.Errorf("error is %v", err)
	}
	for _, name := range []string{"", ".."} {
		if _, _, err := r.LookupSRV(t.Context(), name); err == nil {
			t.Errorf("%q is asked", name)
		}
		if _, _, err := r.LookupAddrs(t.Context(), name); err == nil {
			t.Errorf("%q is asked", name)
		}
	}
}

var errDial = errors.New("no network")
