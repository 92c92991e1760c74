package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/children"
	"github.com/weirhq/weir/policy"
)

const (
	zone    = "rl.test"
	keyID   = 7
	ttl     = time.Second // of DNS, so that the end of the story comes soon
	anyPort = "127.0.0.1:0"
	poll    = 5 * time.Millisecond

	// The default request policy, but for patience: it asks again and waits for up
	// to a second, so that a machine which stalls is not taken for a mistake.
	policyText = "default replays=20 final=29"
)

// stage is what a demo is played on.
type stage struct {
	cfg     Config
	result  Result
	dir     string
	key     apikey.Key
	policy  policy.Policy
	family  *children.Family
	dns     *children.Child
	dnsAddr string
	servers []*serverChild // alive, in the order of their start
	client  *weir.Client
}

// serverChild is a child that is an r-server.
type serverChild struct {
	*children.Child
	name string // A is the oldest
	id   ident.ServerID
	addr string
}

// newStage makes what everything else needs. lost is told when a child ends that
// should not.
func newStage(cfg Config, lost func(error)) (*stage, error) {
	requests, err := policy.Parse(policyText)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-demo-") // only its owner can look into it
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	family := children.New(cfg.Binary, func(err error) { lost(fmt.Errorf("demo: %w", err)) })
	return &stage{cfg: cfg, dir: dir, policy: requests, family: family}, nil
}

// close ends and removes everything.
func (s *stage) close() error {
	if s.client != nil {
		_ = s.client.Close() // always nil
	}
	s.family.End()
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("demo: %s is left behind: %w", s.dir, err)
	}
	return nil
}

// setUp is the first act: a key, a DNS server, two r-servers, a client.
func (s *stage) setUp(ctx context.Context) error {
	if err := s.makeKey(); err != nil {
		return err
	}
	for range 2 {
		if err := s.startServer(ctx); err != nil {
			return err
		}
	}
	// Of two that started in the same second chance has made one the older.
	if s.servers[1].id.Older(s.servers[0].id) {
		s.servers[0], s.servers[1] = s.servers[1], s.servers[0]
	}
	for i, name := range []string{"A", "B"} {
		s.servers[i].name = name
		s.tell(s.servers[i].serves())
	}
	s.tell(OldestIs{Name: s.servers[0].name})
	if err := s.writeMembers(); err != nil {
		return err
	}
	if err := s.startDNS(ctx); err != nil {
		return err
	}
	return s.connect(ctx)
}

func (s *stage) makeKey() error {
	timeline, err := s.policy.Compile()
	if err != nil {
		return err
	}
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = timeline.HorizonMs() // servers remember a request as long as it can last
	quotas, _ = quotas.Round()
	key, err := apikey.New(apikey.AuthAES, keyID, quotas, rand.Reader)
	if err != nil {
		return err
	}
	s.key = key
	if err := s.write("demo.key", key.Encode()+"\n"); err != nil {
		return err
	}
	if err := s.write("tenants.yaml", "tenants:\n  - name: demo\n    key: "+key.Encode()+"\n"); err != nil {
		return err
	}
	s.tell(KeyMade{Key: fmt.Sprint(key), File: s.path("demo.key")})
	return nil
}

func (s *stage) startDNS(ctx context.Context) error {
	c, attrs, err := s.start(ctx, "the DNS server", "dns", "--listen", anyPort, "--zone", zone,
		"--members", s.path("members.yaml"), "--ttl", ttl.String())
	if err != nil {
		return err
	}
	s.dns, s.dnsAddr = c, attrs["dns"]
	s.tell(ChildServes{Name: "DNS", PID: c.PID(), Addr: s.dnsAddr})
	return nil
}

func (s *stage) startServer(ctx context.Context) error {
	c, attrs, err := s.start(ctx, "an r-server", "serve", "--listen", anyPort, "--tenants", s.path("tenants.yaml"))
	if err != nil {
		return err
	}
	id, err := ident.ParseServerID(attrs["server_id"])
	if err != nil {
		return fmt.Errorf("demo: an r-server does not say who it is: %w", err)
	}
	s.servers = append(s.servers, &serverChild{Child: c, id: id, addr: strings.Trim(attrs["listen"], "[]")})
	return nil
}

// start starts a child and waits until it serves.
func (s *stage) start(ctx context.Context, name string, args ...string) (*children.Child, map[string]string, error) {
	c, err := s.family.Start(name, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	attrs, err := c.Serving(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	return c, attrs, nil
}

func (c *serverChild) serves() ChildServes {
	return ChildServes{Name: c.name, PID: c.PID(), Addr: c.addr, ID: c.id}
}

// connect makes the client and waits until it knows all servers.
func (s *stage) connect(ctx context.Context) error {
	resolver, err := discovery.NewDNS(s.dnsAddr)
	if err != nil {
		return err
	}
	begun := time.Now()
	s.client, err = weir.Dial(ctx, weir.Config{Key: s.key, Zone: zone, Resolver: resolver, Policy: s.policy})
	if err != nil {
		return err
	}
	if err := s.await(ctx, func() bool { return len(s.client.Servers()) == len(s.servers) }); err != nil {
		return err
	}
	s.tell(Found{Service: discovery.ServiceName(s.domain()), Servers: len(s.servers), Took: time.Since(begun)})
	return nil
}

func (s *stage) domain() string { return discovery.Domain(zone, keyID) }

// patience is how long the client's policy waits for the oldest server alone, and
// for any server.
func (s *stage) patience() (oldest, anyServer time.Duration) {
	timeline, err := s.policy.Compile()
	if err != nil {
		return 0, 0 // it was compiled before
	}
	return timeline.PreferenceEnd(0), timeline.Horizon()
}

// await polls until something holds or the context ends.
func (s *stage) await(ctx context.Context, holds func() bool) error {
	for !holds() {
		if err := s.pause(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name of the server that decided.
func (s *stage) nameOf(id ident.ServerID) string {
	for _, srv := range s.servers {
		if srv.id == id {
			return srv.name
		}
	}
	return id.String()
}

// writeMembers lists the servers that live in the file that the DNS server
// follows.
func (s *stage) writeMembers() error {
	var b strings.Builder
	b.WriteString("members:")
	if len(s.servers) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, srv := range s.servers {
		fmt.Fprintf(&b, "  - id: %v\n    addr: %s\n", srv.id, srv.addr)
	}
	fmt.Fprintf(&b, "keys: [%d]\n", keyID)
	return s.write("members.yaml", b.String())
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// write puts a whole file in place at once.
func (s *stage) write(name, text string) error {
	next := s.path(name + ".new")
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, s.path(name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("demo: %w", err), os.RemoveAll(next))
	}
	return nil
}
