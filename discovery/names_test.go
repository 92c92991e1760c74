package discovery

import (
	"math"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestNames(t *testing.T) {
	for _, zone := range []string{"rl.test", "rl.test."} {
		d := Domain(zone, 7)
		if d != "c-7.rl.test" || ServiceName(d) != "_ratelimitly._udp.c-7.rl.test" || ServiceName(d+".") != ServiceName(d) {
			t.Errorf("%q: %q, %q", zone, d, ServiceName(d))
		}
	}
}

func TestCheckZone(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	longest := strings.Join([]string{l63, l63, l63, strings.Repeat("b", 20)}, ".") // 212
	good := []string{"test", "rl.test", "rl.test.", "RL.Test", "a-b.c_d.test", "_x.test", "1.test", "xn--bcher-kva.test", longest, longest + ".", HostedZone}
	for _, z := range good {
		if err := CheckZone(z); err != nil {
			t.Errorf("%q: %v", z, err)
		}
		// The longest name made of it is one that DNS takes.
		if _, ok := dns.IsDomainName(ServiceName(Domain(z, math.MaxUint64))); !ok || len(ServiceName(Domain(z, math.MaxUint64))) > 253 {
			t.Errorf("%q makes a name that is too long", z)
		}
	}
	bad := map[string]string{
		"": "empty", ".": "empty", "..": "empty label", ".a": "empty label", "a..b": "empty label",
		"a.b..": "empty label", l63 + "a.test": "64 octets", longest + "b": "213 octets",
		"-a.test": "'-'", "a-.test": "'-'", "a b.test": "' '", "a/b": "'/'", "bücher.test": "xn--",
		"192.0.2.1": "IP address", "::1": "IP address", "rl.test:53": "':'", "a\x00b": `'\x00'`, `a\.b`: `'\\'`,
	}
	for z, want := range bad {
		err := CheckZone(z)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "discovery: the zone ") {
			t.Errorf("%q: %v, want one that says %s", z, err, want)
		}
	}
}

func TestCheckDomain(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	longest := strings.Join([]string{l63, l63, l63, strings.Repeat("b", 43)}, ".") // 235
	if err := CheckDomain(longest); err != nil {
		t.Error(err)
	}
	if err := CheckDomain(longest + "b"); err == nil || !strings.Contains(err.Error(), "the domain has 236 octets") {
		t.Error(err)
	}
}
