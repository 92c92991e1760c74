package reality

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/dnszone"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/children"
	"github.com/weirhq/weir/internal/precise"
	"github.com/weirhq/weir/internal/relay"
)

const (
	zone      = "rl.test"
	keyID     = 7
	stepLimit = time.Minute // for anything that is waited for
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// stage is DNS, servers, each behind a relay, and the client's process.
type stage struct {
	t       *testing.T
	plan    *plan
	key     apikey.Key
	tenants string
	family  *children.Family
	lost    chan error // a child ended that nobody ended
	zone    *dnszone.Zone
	dns     netip.AddrPort
	places  []place
	names   names
}

// place is where a server is.
type place struct {
	relay  *relay.Relay
	child  *children.Child
	id     ident.ServerID
	listed bool
}

// playForReal plays a plan with real processes. The second result is how late what should have been
// on time was, at its 99th percentile.
func playForReal(t *testing.T, binary string, p *plan) (*outcome, time.Duration) {
	t.Helper()
	// Each relay's last wait is a system call, which takes one of Go's processors along.
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + len(p.scenario.Servers))
	defer runtime.GOMAXPROCS(before)
	s := &stage{t: t, plan: p, lost: make(chan error, 16), names: names{}}
	s.open(binary)
	defer s.close()
	a := s.play()
	o := &outcome{Sent: a.Sent, Disturbed: a.TooLate}
	late := a.Late
	for i := range s.places {
		st := s.places[i].relay.Stats()
		t.Logf("relay of %s: %+v", p.scenario.Servers[i].Name, st)
		if unsent := st.Up.Unsent + st.Down.Unsent; unsent > 0 {
			t.Errorf("the relay of %s could not send %d datagrams", p.scenario.Servers[i].Name, unsent)
		}
		late = max(late, st.LateP99)
		o.Disturbed += int(st.TooLate)
	}
	t.Logf("requests were made %v late at p99; %d requests and datagrams were more than %v late", a.Late, o.Disturbed, relay.TooLate)
	for _, e := range a.Ends {
		o.add(e, s.names[e.Server])
	}
	o.finish()
	return o, late
}

func (s *stage) open(binary string) {
	s.t.Helper()
	auth := s.plan.scenario.Auth
	if auth == 0 {
		auth = apikey.AuthNone
	}
	key, err := apikey.New(auth, keyID, apikey.DefaultQuotas(), rand.Reader)
	s.must(err)
	s.key = key
	s.tenants = filepath.Join(s.t.TempDir(), "tenants.yaml")
	s.must(os.WriteFile(s.tenants, []byte("tenants:\n  - name: reality\n    key: "+key.Encode()+"\n"), 0o600))
	s.family = children.New(binary, func(err error) { s.lost <- err })
	s.openDNS()
	s.places = make([]place, len(s.plan.scenario.Servers))
	for i := range s.places {
		p := &s.places[i]
		ways := s.plan.ways[i]
		p.relay, err = relay.Start(relay.Config{
			Front: loopback, Up: ways[0], Down: ways[1], Seed: uint64(i) + 1, Sleep: precise.Sleep,
		})
		s.must(err)
		s.start(i)
		p.listed = true
		if i > 0 && p.id <= s.places[i-1].id {
			s.t.Fatalf("server %d is not the younger one", i)
		}
	}
	s.publish()
}

func (s *stage) openDNS() {
	s.t.Helper()
	ttl := s.plan.scenario.DNS.TTL
	if ttl == 0 {
		ttl = 5 * time.Second
	}
	z, err := dnszone.New(dnszone.Config{Zone: zone, TTL: ttl})
	s.must(err)
	server, err := dnszone.Listen(loopback.String(), z, dnszone.Options{ResponseRate: -1})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		_ = server.Close()
		<-ended
	})
	s.zone, s.dns = z, server.Addr()
}

// close ends everything but DNS, which ends with the test.
func (s *stage) close() {
	s.family.End()
	for i := range s.places {
		if s.places[i].relay != nil {
			s.places[i].relay.Close()
		}
	}
}

// start runs a server as a new process and leads its relay there.
func (s *stage) start(i int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), stepLimit)
	defer cancel()
	c, err := s.family.Start("server "+s.plan.scenario.Servers[i].Name,
		"serve", "--listen", loopback.String(), "--tenants", s.tenants, "--workers", "1", "--steering", "off")
	s.must(err)
	attrs, err := c.Serving(ctx)
	s.must(err)
	id, err := ident.ParseServerID(attrs["server_id"])
	s.must(err)
	addr, err := netip.ParseAddrPort(strings.Trim(attrs["listen"], "[]"))
	s.must(err)
	p := &s.places[i]
	p.child, p.id = c, id
	s.names.start(id, s.plan.scenario.Servers[i].Name)
	p.relay.SetTarget(addr)
}

// publish has DNS name the servers that are listed, at their relays.
func (s *stage) publish() {
	s.t.Helper()
	var members []dnszone.Member
	for i := range s.places {
		if p := &s.places[i]; p.listed {
			members = append(members, dnszone.Member{ID: p.id, Addrs: []netip.AddrPort{p.relay.Addr()}})
		}
	}
	s.must(s.zone.SetMembers(members))
}

// play runs the client's process, and makes happen what the plan says meanwhile.
func (s *stage) play() *answer {
	s.t.Helper()
	o := s.order()
	start := time.Now().Add(time.Duration(o.Start - time.Now().UnixNano()))
	text, err := json.Marshal(o)
	s.must(err)
	client, err := s.family.Talk(os.Stderr, os.Args[0], driveWord)
	s.must(err)
	defer client.End()
	_, err = client.Write(append(text, '\n'))
	s.must(err)
	heard := make(chan error, 1)
	var a answer
	go func() { heard <- json.NewDecoder(client).Decode(&a) }()

	changes := slices.Clone(s.plan.changes)
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	for _, c := range changes {
		select {
		case <-time.After(time.Until(start.Add(c.at))):
			s.change(c)
		case err := <-s.lost:
			s.t.Fatal(err)
		case err := <-heard:
			s.t.Fatalf("the client's process ended early: %v", err)
		}
	}
	select {
	case err = <-heard:
		s.must(err)
	case err := <-s.lost:
		s.t.Fatal(err)
	case <-time.After(time.Until(start.Add(s.plan.scenario.Length + stepLimit))):
		s.t.Fatal("the client's process does not end")
	}
	return &a
}

// change makes happen what is planned for now.
func (s *stage) change(c change) {
	s.t.Helper()
	p := &s.places[c.server]
	switch {
	case c.listed != nil:
		p.listed = *c.listed
		s.publish()
	case c.kill && c.up:
		s.start(c.server)
	case c.kill:
		s.must(p.child.Kill())
	case c.up:
		p.relay.Cut(false, false)
	default:
		p.relay.Cut(c.cut[0], c.cut[1])
	}
}

// order is what the client's process is to do, from a while from now on.
func (s *stage) order() *order {
	s.t.Helper()
	requests, err := s.plan.requests()
	s.must(err)
	ttl := max(time.Second, s.plan.scenario.DNS.TTL)
	o := &order{
		Key: s.key.Encode(), Zone: zone, DNS: s.dns.String(), Policy: s.plan.scenario.Policy.String(),
		Start:   time.Now().Add(2*time.Second + ttl).UnixNano(),
		Servers: len(s.places), Submits: s.plan.submits,
	}
	for range s.plan.scenario.ClientNames() { // as in the simulation: 1 s to 1 s and a TTL before
		o.Dial = append(o.Dial, time.Second+time.Duration(mrand.Int64N(int64(ttl))))
	}
	for _, r := range requests {
		var asks []ask
		for _, res := range r.Resources {
			asks = append(asks, ask{res.Bucket.Name(), res.Bucket.Limit(), res.Bucket.Window(), res.Tokens})
		}
		o.Requests = append(o.Requests, asks)
	}
	return o
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(fmt.Errorf("%s: %w", s.plan.scenario.Name, err))
	}
}
