package discovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
)

// A caller can tell a name that does not exist, a record that is missing, and a
// server that refuses, from each other and from silence.
func TestFailuresAreTold(t *testing.T) {
	lookup := func(s script) error {
		_, _, err := resolverAt(fakeServer(t, s)).LookupSRV(t.Context(), "name.test")
		return err
	}
	soa := []string{"test. 5 IN SOA ns.test. root.test. 1 1 1 1 1"}
	noData := answering(func(dns.Question) (int, []string, []string) { return dns.RcodeSuccess, nil, soa })
	if err := lookup(failing(dns.RcodeNameError)); !errors.Is(err, ErrNoName) || !errors.Is(err, ErrNotFound) {
		t.Errorf("NXDOMAIN: %v", err)
	}
	if err := lookup(noData); errors.Is(err, ErrNoName) || !errors.Is(err, ErrNotFound) {
		t.Errorf("no data: %v", err)
	}
	err := lookup(failing(dns.RcodeRefused))
	var code *ResponseError
	if !errors.As(err, &code) || code.Code != "REFUSED" || errors.Is(err, ErrNotFound) {
		t.Errorf("REFUSED: %v", err)
	}
}

func TestAskedServersAreNamed(t *testing.T) {
	r, err := NewDNS("127.0.0.1:1053", "::1")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r); got != "127.0.0.1:1053, [::1]:53" {
		t.Errorf("asked %s", got)
	}
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 192.0.2.53\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = fromFile(path); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r); got != "192.0.2.53:53 ("+path+")" {
		t.Errorf("asked %s", got)
	}
	if got := fmt.Sprint(netResolver{}); got != "the system's resolver" {
		t.Errorf("asked %s", got)
	}
}
