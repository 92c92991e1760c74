package discovery

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
	"pgregory.net/rapid"
)

func TestParseServer(t *testing.T) {
	s, err := ParseServer("1015809@192.0.2.1:29292, [2001:db8::1]:29292,[::ffff:192.0.2.9]:1")
	want := []netip.AddrPort{
		netip.MustParseAddrPort("192.0.2.1:29292"), netip.MustParseAddrPort("[2001:db8::1]:29292"), netip.MustParseAddrPort("192.0.2.9:1"),
	}
	if err != nil || s.ID != 1015809 || !slices.Equal(s.Addrs, want) {
		t.Fatalf("got %v, %v", s, err)
	}
	bad := map[string]string{
		"":                               "no ID",
		"192.0.2.1:1":                    "no ID",
		"@192.0.2.1:1":                   "ID",
		"07@192.0.2.1:1":                 "zero",
		"-7@192.0.2.1:1":                 "ID",
		"7@":                             "IP address with a port",
		"7@192.0.2.1":                    "IP address with a port",
		"7@192.0.2.1:1,":                 "IP address with a port",
		"7@host:1":                       "IP address with a port",
		"7@192.0.2.1:0":                  "port 0",
		"7@0.0.0.0:1":                    "unspecified",
		"7@[::]:1":                       "unspecified",
		"7@[::ffff:0.0.0.0]:1":           "unspecified",
		"7@224.0.0.1:1":                  "multicast",
		"7@[ff02::1]:1":                  "multicast",
		"7@255.255.255.255:1":            "broadcast",
		"7@192.0.2.1:1,192.0.2.1:1":      "twice",
		"7@1.1.1.1:1,[::ffff:1.1.1.1]:1": "twice",
	}
	for in, want := range bad {
		if _, err := ParseServer(in); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "discovery: server ") {
			t.Errorf("%q: %v, want one that says %s", in, err, want)
		}
	}
}

func TestServerTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Server{ID: ident.ServerID(rapid.Uint64().Draw(t, "id"))}
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")
			if rapid.Bool().Draw(t, "v6") {
				b = append([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0}, b...)
			} else {
				b[0] = 1 + b[0]%223 // neither unspecified nor multicast
			}
			ip, _ := netip.AddrFromSlice(b)
			a := netip.AddrPortFrom(ip, rapid.Uint16Min(1).Draw(t, "port"))
			if !slices.Contains(want.Addrs, a) {
				want.Addrs = append(want.Addrs, a)
			}
		}
		got, err := ParseServer(want.String())
		if err != nil || got.ID != want.ID || !slices.Equal(got.Addrs, want.Addrs) {
			t.Fatalf("%q reads as %v, %v", want, got, err)
		}
	})
}

func parseServerTarget() *storm.Target {
	target := storm.New("FuzzParseServer", func(t testing.TB, s string) {
		got, err := ParseServer(s)
		if err != nil {
			return
		}
		again, err := ParseServer(got.String())
		if err != nil || again.String() != got.String() {
			t.Fatalf("%q reads as %q, which reads as %q, %v", s, got, again, err)
		}
	})
	target.Add("1015809@192.0.2.1:29292,[2001:db8::1]:29292")
	target.Add("7@[fe80::1%eth0]:1")
	target.Add("@,:")
	return target
}

func FuzzParseServer(f *testing.F)      { parseServerTarget().Fuzz(f) }
func TestStormParseServer(t *testing.T) { parseServerTarget().Storm(t) }
