package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// patience is how long a test waits for what must come. It decides no outcome: what
// does not come is a failure, however long it is waited for.
const patience = 20 * time.Second

// running is a server that runs until the test ends.
type running struct {
	*Server
	log    *logBuffer
	cancel context.CancelFunc // asks it to end
	ended  chan error         // what Run returned
}

// start runs a server on 127.0.0.1 unless the configuration says otherwise, and waits
// until it serves.
func start(t *testing.T, c Config) *running {
	t.Helper()
	log, logger := newLog()
	c.Logger = logger
	if len(c.Listen) == 0 {
		c.Listen = []string{"127.0.0.1:0"}
	}
	if c.Clock == nil {
		c.Clock = patientClock{systemClock{origin: time.Now()}}
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, log: log, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		s.Close()
		cancel()
		if err, open := <-r.ended; open && err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	log.await(t, "msg=serving", 1)
	return r
}

// patientClock is the machine's, and not known as that: no datagram is late. Tests ask
// once, on machines that may have no processor to spare for longer than a dedup TTL.
type patientClock struct{ Clock }

// wait waits until the server has ended.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		close(r.ended)
		return err
	case <-time.After(patience):
		t.Fatal("the server does not end")
		return nil
	}
}

// socket is a raw UDP socket with a client of one key.
type socket struct {
	*client
	conn *net.UDPConn
	to   netip.AddrPort
	at   uint64 // the time of a server whose clock is a test's, in Unix ms; 0: the current time
}

// dial opens a socket to talk to a server from the loopback address of its family.
func dial(t *testing.T, k apikey.Key, to netip.AddrPort) *socket {
	t.Helper()
	local := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 0)
	if to.Addr().Is6() {
		local = netip.AddrPortFrom(netip.IPv6Loopback(), 0)
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &socket{client: newClient(t, k), conn: conn, to: to}
	return s
}

// fresh gives the next datagram another identity and the current time, which is later
// than the start of any server that runs.
func (s *socket) fresh() {
	s.next()
	s.header.Timestamp = s.at + 1
	if s.at == 0 {
		s.header.Timestamp = uint64(time.Now().UnixMilli()) + 1
	}
}

// exchange sends a datagram and returns its answer and where that came from.
func (s *socket) exchange(b []byte) ([]byte, netip.AddrPort, error) {
	if _, err := s.conn.WriteToUDPAddrPort(b, s.to); err != nil {
		return nil, netip.AddrPort{}, err
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, netip.AddrPort{}, err
	}
	in := make([]byte, wire.MaxDatagram+1)
	n, from, err := s.conn.ReadFromUDPAddrPort(in)
	return in[:n], from, err
}

// acquire asks a fresh question and returns its answer.
func (s *socket) acquire(req *wire.Request) reply {
	s.tb.Helper()
	s.fresh()
	b, _, err := s.exchange(s.request(req))
	if err != nil {
		s.tb.Fatal(err)
	}
	return s.open(b, req.Layout)
}

// tenantsFile is a tenants file of one line per tenant.
func tenantsFile(lines ...string) string {
	return "tenants:\n" + strings.Join(lines, "\n") + "\n"
}

func tenantLine(name string, keys ...apikey.Key) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.Encode())
	}
	return fmt.Sprintf("  - {keys: [%s], name: %s}", strings.Join(list, ", "), name)
}

// canListen reports whether this machine has an address.
func canListen(addr string) bool {
	c, err := udp.Host().Listen(netip.MustParseAddrPort(addr), udp.Options{})
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// A client in each mode and layout is served over real sockets, over IPv4 and, where
// there is any, IPv6, by one server.
func TestServe(t *testing.T) {
	keys := []apikey.Key{newKey(t, apikey.AuthNone, 1), newKey(t, apikey.AuthCookie, 2), newKey(t, apikey.AuthAES, 3)}
	c := Config{
		TenantsFile: tempFile(t, tenantsFile(tenantLine("a", keys[0]), tenantLine("b", keys[1]), tenantLine("c", keys[2]))),
		Listen:      []string{"127.0.0.1:0"},
	}
	if canListen("[::1]:0") {
		c.Listen = append(c.Listen, "[::1]:0")
	}
	s := start(t, c)
	if len(s.Addrs()) != len(c.Listen) || !strings.Contains(s.log.String(), "server_id="+s.ID().String()) {
		t.Errorf("listening on %v; the log is\n%s", s.Addrs(), s.log)
	}
	for i, addr := range s.Addrs() {
		for _, key := range keys {
			for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
				client := dial(t, key, addr)
				client.header.UniqueID[8], client.header.UniqueID[9] = byte(layout), byte(i)
				req := checkout(1)
				req.Layout = layout
				req.Resources[0].Bucket = ident.Bucket(fmt.Sprint(addr, key, layout), 1000, 1)
				req.Resources[0].Rate = 1
				if r := client.acquire(req); !r.granted() || r.header.KeyID != uint64(s.ID()) {
					t.Errorf("%v %v %v: 1 of 1 is not granted, or by %d", addr, key, layout, r.header.KeyID)
				}
				req.Resources[0].Tokens = 2
				if r := client.acquire(req); r.granted() || r.view.Resource(0).Tokens == 0 {
					t.Errorf("%v %v %v: 2 of 1 are granted", addr, key, layout)
				}
			}
		}
	}
	s.cancel()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.log.String(), "msg=stopped") {
		t.Errorf("the log is\n%s", s.log)
	}
}

// loopbacks are the addresses of a family that this machine answers on itself, without
// zones. All of 127.0.0.0/8 is, where that is so for 127.0.0.2.
func loopbacks(t *testing.T, v4 bool) (list []netip.Addr) {
	t.Helper()
	if v4 {
		list = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		for _, more := range []string{"127.0.0.2", "127.255.255.254"} {
			if canListen(more + ":0") {
				list = append(list, netip.MustParseAddr(more))
			}
		}
		return list
	}
	prefixes, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prefixes {
		a, err := netip.ParsePrefix(p.String())
		if err == nil && a.Addr().Is6() && !a.Addr().IsLinkLocalUnicast() && canListen(netip.AddrPortFrom(a.Addr(), 0).String()) {
			list = append(list, a.Addr())
		}
	}
	return list
}

// The answer comes from the address that was asked, on a wildcard socket too, in both
// families, and however many workers there are.
func TestAnswersFromTheAddressAsked(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	for wildcard, hosts := range map[string][]netip.Addr{"0.0.0.0:0": loopbacks(t, true), "[::]:0": loopbacks(t, false)} {
		if len(hosts) == 0 {
			continue
		}
		s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Listen: []string{wildcard}, Workers: 2})
		for i, host := range hosts {
			to := netip.AddrPortFrom(host, s.Addrs()[0].Port())
			for n := range 4 { // by different workers
				client := dial(t, key, to)
				client.header.UniqueID[8], client.header.UniqueID[9] = byte(i), byte(n)
				client.fresh()
				_, from, err := client.exchange(client.request(checkout(1)))
				if err != nil {
					t.Fatalf("%v: %v", to, err)
				}
				if from != to {
					t.Errorf("%v was asked and %v answers", to, from)
				}
			}
		}
	}
}

func TestConfigErrors(t *testing.T) {
	aes := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}
	none := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthNone, 7)}}}
	loopback := []string{"127.0.0.1:0"}
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"no address", Config{Tenants: aes}, "server: listen: no address; give at least one, such as 127.0.0.1:29292"},
		{"no port", Config{Tenants: aes, Listen: []string{"127.0.0.1"}}, `server: listen: "127.0.0.1" is not an IP address and a port, such as 127.0.0.1:29292, [::1]:29292 or 0.0.0.0:29292`},
		{"no host", Config{Tenants: aes, Listen: []string{":29292"}}, `server: listen: ":29292" is not an IP address and a port, `},
		{"a name", Config{Tenants: aes, Listen: []string{"example.com:29292"}}, `server: listen: "example.com:29292" is not an IP address and a port, `},
		{"an address twice", Config{Tenants: aes, Listen: []string{"127.0.0.1:29292", "localhost:29292"}}, "server: listen: localhost:29292 is given twice"},
		{"no tenants", Config{Listen: loopback}, "server: tenants: give either a tenants file or a list of tenants"},
		{"tenants twice", Config{Listen: loopback, Tenants: aes, TenantsFile: "x"}, "server: tenants: give either a tenants file or a list of tenants"},
		{"no such file", Config{Listen: loopback, TenantsFile: "absent.yaml"}, "server: absent.yaml: no such file or directory"},
		{"a tenant without keys", Config{Listen: loopback, Tenants: []Tenant{{}}}, "server: tenant 1: there are 0 keys; a tenant has 1 to 4"},
		{"a zero key", Config{Listen: loopback, Tenants: []Tenant{{Keys: make([]apikey.Key, 1)}}}, "server: tenant 1, key 1: the key is zero; parse or make one with package apikey"},
		{"an unknown estimator", Config{Listen: loopback, Tenants: []Tenant{{Keys: aes[0].Keys, Estimator: 200}}}, "server: tenant 1: the estimator is none of p50, min, p90, p99 and mean"},
		{"a key ID twice", Config{Listen: loopback, Tenants: append(none, aes...)}, "server: tenant 2, key 1: tenant 1 (7) has a key with the key ID 7 too; "},
		{"none exposed", Config{Listen: []string{"127.0.0.1:0", "0.0.0.0:0"}, Tenants: none}, "server: tenant 1, key 1: a key in none mode can be forged by whoever reaches the port, and 0.0.0.0:0 is open to other machines; "},
		{"none on a network", Config{Listen: []string{"192.0.2.7:29292"}, Tenants: none}, "server: tenant 1, key 1: a key in none mode can be forged by whoever reaches the port, and 192.0.2.7:29292 is open to other machines; "},
		{"skew", Config{Listen: loopback, Tenants: aes, Skew: 1500 * time.Microsecond}, "server: skew: 1.5ms is not a whole number of milliseconds from 1 ms to 1 h"},
		{"dedup TTL cap", Config{Listen: loopback, Tenants: aes, DedupTTLCap: -1}, "server: dedup TTL cap: -1ns is not a whole number of milliseconds from 1 ms to 1 h"},
		{"TTL", Config{Listen: loopback, Tenants: aes, TTL: 1500 * time.Millisecond}, "server: TTL: 1.5s is not a whole number of seconds from 1 s to 24 h"},
		{"identities", Config{Listen: loopback, Tenants: aes, Identities: -1}, "server: identities: -1 is negative"},
		{"zone alone", Config{Listen: loopback, Tenants: aes, Zone: "rl.test"}, "server: zone: there is no DNS address to serve it on; give one too"},
		{"DNS alone", Config{Listen: loopback, Tenants: aes, DNS: "127.0.0.1:0"}, "server: DNS: there is no zone to serve; give one too, such as rl.test"},
		{"advertise alone", Config{Listen: loopback, Tenants: aes, Advertise: []string{"192.0.2.1"}}, "server: advertise: there is no DNS to tell it; give a DNS address and a zone too"},
		{"wildcard", Config{Listen: []string{"0.0.0.0:0"}, Tenants: aes, DNS: "127.0.0.1:0", Zone: "rl.test"}, "server: advertise: DNS cannot tell clients the wildcard address 0.0.0.0; give the address that they reach this machine by"},
		{"advertise a wildcard", Config{Listen: loopback, Tenants: aes, DNS: "127.0.0.1:0", Zone: "rl.test", Advertise: []string{"[::]:1"}}, "server: advertise: no client can reach ::"},
		{"advertise a name", Config{Listen: loopback, Tenants: aes, DNS: "127.0.0.1:0", Zone: "rl.test", Advertise: []string{"host:1"}}, `server: advertise: "host:1" is not an IP address, with or without a port`},
		{"bad zone", Config{Listen: loopback, Tenants: aes, DNS: "127.0.0.1:0", Zone: "a..b"}, "server: zone: "},
		{"exposed admin", Config{Listen: loopback, Tenants: aes, Admin: "0.0.0.0:0"}, "server: admin: 0.0.0.0 is not a loopback address; it asks nobody for a password, so give 127.0.0.1 or [::1]"},
		{"clock before the build", Config{Listen: loopback, Tenants: aes, Clock: &fakeClock{}}, "server: the clock says 1970-01-01T00:00:00Z, but this program was built at 20"},
		{"no entropy", Config{Listen: loopback, Tenants: aes, Entropy: strings.NewReader("")}, "server: drawing the server ID: EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(c.config)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// A port that another server has is refused in one line, and what was bound before the
// failure is free again.
func TestTakenPorts(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}
	s := start(t, Config{Tenants: tenants, DNS: "127.0.0.1:0", Zone: "rl.test", Admin: "127.0.0.1:0"})
	free, err := New(Config{Tenants: tenants, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	again := free.Addrs()[0].String()
	free.Close()
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"UDP", Config{Listen: []string{again, s.Addrs()[0].String()}}, "server: cannot listen on UDP " + s.Addrs()[0].String() + ": the port is taken by another program, perhaps another server; stop that or choose another port"},
		{"admin", Config{Listen: []string{again}, Admin: s.AdminAddr().String()}, "server: cannot listen on admin TCP " + s.AdminAddr().String() + ": the port is taken by another program, "},
		{"DNS", Config{Listen: []string{again}, DNS: s.DNSAddr().String(), Zone: "rl.test"}, "server: dnszone: cannot serve DNS on " + s.DNSAddr().String()},
	} {
		c.config.Tenants = tenants
		other, err := New(c.config)
		if err == nil {
			other.Close()
			t.Errorf("%s: the port is taken twice", c.name)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is\n%v\nwant\n%s", c.name, err, c.want)
		}
	}
	last, err := New(Config{Tenants: tenants, Listen: []string{again}})
	if err != nil {
		t.Fatalf("what failed starts left behind: %v", err)
	}
	last.Close()
}

func TestRunsOnce(t *testing.T) {
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}})
	if err := s.Run(t.Context()); err == nil {
		t.Error("it ran twice at once")
	}
	s.Close()
	s.Close()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("it ran again")
	}
}

func TestCloseWithoutRun(t *testing.T) {
	s, err := New(Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"127.0.0.1:0"}, Admin: "127.0.0.1:0", DNS: "127.0.0.1:0", Zone: "rl.test"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("to run a closed server: %v", err)
	}
	c, err := udp.Host().Listen(s.Addrs()[0], udp.Options{})
	if err != nil {
		t.Fatalf("its port is not free: %v", err)
	}
	c.Close()
}

// Servers that start in the same second have IDs of that second, and not the same.
func TestServerIDs(t *testing.T) {
	seen := make(map[ident.ServerID]bool)
	for i := range 20 {
		clock := newFakeClock()
		s, err := New(Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"127.0.0.1:0"}, Clock: clock, Entropy: entropy(byte(i))})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ID().Start().UnixMilli(); got != testTime {
			t.Errorf("start is %d, want %d", got, testTime)
		}
		seen[s.ID()] = true
		s.Close()
	}
	if len(seen) != 20 {
		t.Errorf("%d IDs of 20 servers", len(seen))
	}
}

// A socket that fails for good does not take a core, and one that fails in passing
// goes on.
func TestReadErrors(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	conn := &failingConn{failures: errorsInARow + 2, datagram: c.request(checkout(1))}
	w.conn = conn
	w.run(t.Context())
	if conn.answers != 1 || w.counts.readErrors.Load() != uint64(errorsInARow+2) || w.counts.writeErrors.Load() != 1 {
		t.Errorf("%d answers after %d errors of reading and %d of writing", conn.answers, w.counts.readErrors.Load(), w.counts.writeErrors.Load())
	}
}

// failingConn fails to read some times, then has a datagram, and is closed. It fails
// to write.
type failingConn struct {
	udp.Conn
	failures int
	datagram []byte
	answers  int
}

func (f *failingConn) Read(ds []udp.Datagram) (int, error) {
	switch {
	case f.failures > 0:
		f.failures--
		return 0, os.ErrPermission
	case f.datagram == nil:
		return 0, net.ErrClosed
	}
	ds[0].N, ds[0].Peer = copy(ds[0].Buf, f.datagram), peer
	f.datagram = nil
	return 1, nil
}

func (f *failingConn) Write([]udp.Datagram) (int, error) {
	f.answers++
	return 0, errors.New("no route")
}
