package server

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
)

// Defaults of [Config], which `weir serve` has too.
const (
	DefaultSkew        = 5 * time.Second
	DefaultDedupTTLCap = 2 * time.Second
	DefaultTTL         = 5 * time.Second
	DefaultIdentities  = limiter.DefaultIdentities
	DefaultAnswerBytes = limiter.DefaultAnswerBytes
	DefaultMaxLabels   = 4096

	DefaultReceiveWait = 50 * time.Millisecond
	DefaultReceiveRate = 100_000
)

var defaultReceiveBuffer = ReceiveBuffer{Wait: DefaultReceiveWait, Rate: DefaultReceiveRate}

const (
	maxTTL     = 24 * time.Hour
	maxWorkers = 1024
)

// NoDrain is a [Config.Drain] that ends a server at once.
const NoDrain time.Duration = -1

// Config says what a server is to be. Listen and one of Tenants and TenantsFile are
// required; the zero value of every other field is its default.
type Config struct {
	// Listen are the UDP addresses to answer on, IPv4 and IPv6: an IP address and a
	// port each, where port 0 lets the system choose. Together they are one server.
	Listen []string

	// Workers is how many sockets share each Listen address, each read by a goroutine of
	// its own that serves every tenant: 1 to 1024. 0 is one for each processor that Go
	// uses (GOMAXPROCS). Where the system does not spread flows over the sockets of one
	// port (it does on Linux) there is one.
	Workers int
	// NoSteering has every answer tell its client to keep its port. Otherwise, while one of
	// the workers of an address has more to do than the others, some clients are asked for
	// another, by which they come to a worker anew (docs/server.md, "Steering").
	NoSteering bool
	// NoBursts moves datagrams one by one. Otherwise those of one flow that come close together
	// come, and their answers leave, many in one buffer of the system's, where that can do it
	// (docs/server.md, "Bursts").
	NoBursts bool

	// ReceiveBuffer is how much may wait in the sockets of each Listen address. The system
	// may allow less, which is logged.
	ReceiveBuffer ReceiveBuffer

	// TenantsFile is the YAML file that names the tenants (docs/server.md, "Tenants").
	// It is read again when it changes and by [Server.Reload].
	TenantsFile string
	// Tenants are the tenants of a server without a file.
	Tenants []Tenant
	// LegacyKeys accepts keys of the legacy format for the tenants of TenantsFile that
	// do not say with `legacy_keys` whether they do.
	LegacyKeys bool
	// Estimator is that of the tenants of TenantsFile that name none.
	Estimator limiter.Estimator

	// Skew is how far a datagram's timestamp may be from the server's wall clock:
	// whole milliseconds from 1 ms to 1 h.
	Skew time.Duration
	// DedupTTLCap bounds the dedup TTL that a request may ask for, on top of the quota
	// of its key: whole milliseconds from 1 ms to 1 h.
	DedupTTLCap time.Duration

	// Identities is how many executed identities each tenant is remembered by, and
	// AnswerBytes how much memory the answers kept for repeats may take, per tenant
	// (docs/server.md, "Memory").
	Identities  int
	AnswerBytes int
	// MaxLabels bounds how many metrics labels are counted apart per tenant, on top of
	// the quota of its key.
	MaxLabels int

	// MemoryLimit is how many bytes the state of all tenants may come to hold, each with
	// every quota used up; 0 is no limit. Tenants that could take more are clamped, or
	// refused if MemoryStrict is set (docs/server.md, "Memory").
	MemoryLimit  int64
	MemoryStrict bool

	// DNS is the address, UDP and TCP, of an authoritative DNS server for Zone that
	// tells clients where this server is; "" for none. Zone is required with it.
	DNS  string
	Zone string
	// Advertise are the addresses that DNS tells instead of those listened on: an IP
	// address each, with a port or with that of the first Listen address. They are
	// required when a Listen address is a wildcard.
	Advertise []string
	// TTL is how long DNS answers may be kept: whole seconds from 1 s to 24 h.
	TTL time.Duration

	// Admin is the TCP address of health, readiness and metrics over HTTP, which must
	// be a loopback address; "" for none.
	Admin string

	// Drain is how long the server goes on answering after it has been asked to end
	// and has left DNS, so that clients learn it before they lose it. 0 means twice TTL
	// and two seconds when there is DNS to leave, and no time when there is none;
	// [NoDrain] means no time in any case.
	Drain time.Duration

	// Logger takes what an operator should know; nil discards it.
	Logger *slog.Logger
	// Clock is the time to go by; nil is the machine's clock.
	Clock Clock
	// Entropy is a cryptographic source for nonces, hash seeds and the server ID; nil
	// is the machine's. Anything else is for tests.
	Entropy io.Reader
	// Stack opens the UDP sockets; nil is the machine's. Anything else is for tests.
	Stack udp.Stack
}

// Tenant is one customer of a server: the owner of a key ID, and of the state that
// belongs to it.
type Tenant struct {
	// Keys are the API keys, newest first, all of one key ID; at most four. A datagram
	// under any of them is the tenant's, and is answered under the same one.
	Keys []apikey.Key
	// Name names the tenant in metrics and logs: at most 64 bytes that print, unlike
	// every other tenant's. "" stands for the key ID.
	Name string
	// Estimator is the statistic that the tenant's latency guards go by.
	Estimator limiter.Estimator
	// NoPacing makes guards that trip shed plainly: they pass while the estimate is below
	// their threshold, and nobody is let in while it is not (docs/pacing.md).
	NoPacing bool
	// Shadow makes the tenant's limits advice (`mode: shadow`): requests are evaluated and
	// counted, and consume what they would if it were enforced, but the answer to a
	// rejected one passes: no deficit, latencies below their thresholds. Nothing passes a
	// threshold of 0.
	Shadow bool
	// MaxRate is how many datagrams a second the tenant may send, from 1 to 10^9: in any
	// span of t seconds at most MaxRate * (t + 1) authentic ones are taken in, be they
	// requests, repeats or reports. The others are dropped. 0 is no bound.
	MaxRate int
	// InsecureAuth allows keys in none or cookie mode on addresses that other machines
	// can reach. In none mode whoever reaches the port can forge, in cookie mode
	// whoever sees one datagram.
	InsecureAuth bool
}

// settings are a Config whose defaults are filled in and whose texts are parsed.
type settings struct {
	Config
	listen    []netip.AddrPort
	advertise []netip.AddrPort // port 0 stands for the first listener's
	dns       netip.AddrPort
	admin     netip.AddrPort
	skew      uint32 // ms
	dedupCap  uint32 // ms
}

// exposed reports the first address that other machines can reach.
func (s *settings) exposed() (netip.AddrPort, bool) {
	for _, a := range s.listen {
		if !a.Addr().IsLoopback() {
			return a, true
		}
	}
	return netip.AddrPort{}, false
}

// check validates c and returns it with defaults, or a ConfigError.
func (c Config) check() (*settings, error) {
	s := &settings{Config: c}
	s.fill()
	for _, step := range []func() error{s.checkListen, s.checkTimes, s.checkBounds, s.checkDNS, s.checkAdmin} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if (len(c.Tenants) > 0) == (c.TenantsFile != "") {
		return nil, bad("Tenants", "give either a tenants file or a list of tenants")
	}
	return s, nil
}

func (s *settings) fill() {
	s.Workers = orDefault(s.Workers, runtime.GOMAXPROCS(0))
	s.ReceiveBuffer = orDefault(s.ReceiveBuffer, defaultReceiveBuffer)
	s.Skew = orDefault(s.Skew, DefaultSkew)
	s.DedupTTLCap = orDefault(s.DedupTTLCap, DefaultDedupTTLCap)
	s.TTL = orDefault(s.TTL, DefaultTTL)
	s.Identities = orDefault(s.Identities, DefaultIdentities)
	s.AnswerBytes = orDefault(s.AnswerBytes, DefaultAnswerBytes)
	s.MaxLabels = orDefault(s.MaxLabels, DefaultMaxLabels)
	switch {
	case s.Drain < 0 || s.Drain == 0 && s.DNS == "":
		s.Drain = 0
	case s.Drain == 0:
		s.Drain = 2*s.TTL + 2*time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Clock == nil {
		s.Clock = systemClock{origin: time.Now()}
	}
	if s.Entropy == nil {
		s.Entropy = rand.Reader
	}
	if s.Stack == nil {
		s.Stack = udp.Host()
	}
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (s *settings) checkListen() error {
	if len(s.Listen) == 0 {
		return bad("Listen", "no address; give at least one, such as 127.0.0.1:29292")
	}
	for _, text := range s.Listen {
		a, err := parseAddr("Listen", text)
		if err != nil {
			return err
		}
		for _, other := range s.listen {
			if a == other && a.Port() != 0 {
				return bad("Listen", "%s is given twice", text)
			}
		}
		s.listen = append(s.listen, a)
	}
	return nil
}

func (s *settings) checkTimes() error {
	var err error
	if s.skew, err = milliseconds("Skew", s.Skew); err != nil {
		return err
	}
	if s.dedupCap, err = milliseconds("DedupTTLCap", s.DedupTTLCap); err != nil {
		return err
	}
	if s.TTL < time.Second || s.TTL > maxTTL || s.TTL%time.Second != 0 {
		return bad("TTL", "%v is not a whole number of seconds from 1 s to 24 h", s.TTL)
	}
	return nil
}

func (s *settings) checkBounds() error {
	if s.Workers < 1 || s.Workers > maxWorkers {
		return bad("Workers", "%d is not from 1 to %d", s.Workers, maxWorkers)
	}
	if err := s.ReceiveBuffer.check(s.Workers); err != nil {
		return bad("ReceiveBuffer", "%v", err)
	}
	for _, b := range []struct {
		field string
		value int
	}{
		{"Identities", s.Identities}, {"AnswerBytes", s.AnswerBytes}, {"MaxLabels", s.MaxLabels},
	} {
		if b.value < 0 {
			return bad(b.field, "%d is negative", b.value)
		}
	}
	if s.MemoryLimit < 0 {
		return bad("MemoryLimit", "%d is negative", s.MemoryLimit)
	}
	if s.MemoryStrict && s.MemoryLimit == 0 {
		return bad("MemoryLimit", "there is none to be strict about; give one")
	}
	return nil
}

func (s *settings) checkDNS() error {
	if s.DNS == "" {
		if s.Zone != "" {
			return bad("Zone", "there is no DNS address to serve it on; give one too")
		}
		if len(s.Advertise) > 0 {
			return bad("Advertise", "there is no DNS to tell it; give a DNS address and a zone too")
		}
		return nil
	}
	if s.Zone == "" {
		return bad("DNS", "there is no zone to serve; give one too, such as rl.test")
	}
	var err error
	if s.dns, err = parseAddr("DNS", s.DNS); err != nil {
		return err
	}
	for _, text := range s.Advertise {
		a, err := parseAdvertised(text)
		if err != nil {
			return err
		}
		s.advertise = append(s.advertise, a)
	}
	if len(s.advertise) > 0 {
		return nil
	}
	for _, a := range s.listen {
		if a.Addr().IsUnspecified() {
			return bad("Advertise", "DNS cannot tell clients the wildcard address %v; give the address that they reach this machine by", a.Addr())
		}
	}
	return nil
}

func (s *settings) checkAdmin() error {
	if s.Admin == "" {
		return nil
	}
	var err error
	if s.admin, err = parseAddr("Admin", s.Admin); err != nil {
		return err
	}
	if !s.admin.Addr().IsLoopback() {
		return bad("Admin", "%v is not a loopback address; it asks nobody for a password, so give 127.0.0.1 or [::1]", s.admin.Addr())
	}
	return nil
}

// parseAddr reads an address and port; localhost stands for 127.0.0.1.
func parseAddr(field, text string) (netip.AddrPort, error) {
	if port, ok := strings.CutPrefix(text, "localhost:"); ok {
		text = "127.0.0.1:" + port
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, bad(field, "%q is not an IP address and a port, such as 127.0.0.1:29292, [::1]:29292 or 0.0.0.0:29292", text)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

func parseAdvertised(text string) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(text)
	a := netip.AddrPortFrom(ip.Unmap(), 0)
	if err != nil {
		a, err = parseAddr("Advertise", text)
	}
	if err != nil {
		return netip.AddrPort{}, bad("Advertise", "%q is not an IP address, with or without a port", text)
	}
	if a.Addr().IsUnspecified() || a.Addr().IsMulticast() || a.Addr().Zone() != "" {
		return netip.AddrPort{}, bad("Advertise", "no client can reach %v", a.Addr())
	}
	return a, nil
}

// milliseconds converts a time that the engine counts in milliseconds.
func milliseconds(field string, d time.Duration) (uint32, error) {
	if d < time.Millisecond || d > time.Hour || d%time.Millisecond != 0 {
		return 0, bad(field, "%v is not a whole number of milliseconds from 1 ms to 1 h", d)
	}
	return uint32(d / time.Millisecond), nil
}
