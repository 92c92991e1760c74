package soak

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	anyPort = "127.0.0.1:0"
)

// stage is a DNS server, r-servers and a client.
type stage struct {
	t       *testing.T
	dir     string
	key     apikey.Key
	policy  policy.Policy
	family  *children.Family
	lost    chan error // a child ended that nobody ended
	dns     string
	servers []*server
	client  *weir.Client
	queue   *queueWatch
}

// server is one r-server: it keeps its address, if it can, and gets another ID
// and process with each start.
type server struct {
	child *children.Child
	id    ident.ServerID
	addr  string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	asked, err := policy.Parse(*requests)
	if err != nil {
		t.Fatal(err)
	}
	timeline, err := asked.Compile()
	if err != nil {
		t.Fatal(err)
	}
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = max(quotas.DedupTTL, timeline.HorizonMs())
	quotas, _ = quotas.Round()
	key, err := apikey.New(apikey.AuthAES, keyID, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("policy %v, horizon %v; %d callers, %d restarts", asked, timeline.Horizon(), *callers, *restarts)
	s := &stage{t: t, dir: t.TempDir(), key: key, policy: asked, lost: make(chan error, 16)}
	binary, err := children.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.family = children.New(binary, func(err error) { s.lost <- err })
	t.Cleanup(s.family.End)
	s.queue = watchQueue()
	s.queue.name(os.Getpid(), "the client")
	t.Cleanup(s.queue.end)
	s.write("tenants.yaml", "tenants:\n  - name: soak\n    key: "+key.Encode()+"\n")
	return s
}

// start adds a server.
func (s *stage) start() {
	s.t.Helper()
	srv, err := s.startAt(anyPort)
	if err != nil {
		s.t.Fatal(err)
	}
	s.servers = append(s.servers, srv)
}

// startAt starts a server at an address and waits until it serves.
func (s *stage) startAt(addr string) (*server, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), stepLimit)
	defer cancel()
	c, err := s.family.Start("an r-server", "serve", "--listen", addr, "--tenants", filepath.Join(s.dir, "tenants.yaml"))
	if err != nil {
		return nil, err
	}
	attrs, err := c.Serving(ctx)
	if err != nil {
		return nil, err
	}
	id, err := ident.ParseServerID(attrs["server_id"])
	if err != nil {
		return nil, err
	}
	s.queue.name(c.PID(), fmt.Sprintf("server %v", id))
	return &server{c, id, strings.Trim(attrs["listen"], "[]")}, nil
}

// oldest returns the server that decides while it lives.
func (s *stage) oldest() *server {
	return slices.MinFunc(s.servers, func(a, b *server) int { return cmp.Compare(a.id, b.id) })
}

func (s *stage) kill(srv *server) {
	s.t.Helper()
	s.queue.forget(srv.child.PID())
	if err := srv.child.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// restart starts a killed server again: where it was, unless somebody has taken
// the port meanwhile.
func (s *stage) restart(srv *server) {
	s.t.Helper()
	next, err := s.startAt(srv.addr)
	var ended *children.LostError
	if errors.As(err, &ended) && strings.Contains(ended.Log, "in use") {
		s.t.Logf("%s is taken; the server moves", srv.addr)
		<-s.lost // told of it, too
		next, err = s.startAt(anyPort)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	*srv = *next
}

// publish makes the servers members of the zone, and starts DNS at first.
func (s *stage) publish() {
	s.t.Helper()
	var b strings.Builder
	b.WriteString("members:\n")
	for _, srv := range s.servers {
		fmt.Fprintf(&b, "  - id: %v\n    addr: %s\n", srv.id, srv.addr)
	}
	s.write("members.yaml", b.String())
	if s.dns != "" {
		return
	}
	c, err := s.family.Start("the DNS server", "dns", "--listen", anyPort, "--zone", zone,
		"--members", filepath.Join(s.dir, "members.yaml"), "--ttl", "1s")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), stepLimit)
	defer cancel()
	attrs, err := c.Serving(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.dns = attrs["dns"]
}

// connect makes the client.
func (s *stage) connect() {
	s.t.Helper()
	resolver, err := discovery.NewDNS(s.dns)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), stepLimit)
	defer cancel()
	s.client, err = weir.Dial(ctx, weir.Config{Key: s.key, Zone: zone, Resolver: resolver, Policy: s.policy})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.client.Close() })
	s.await("the client to know all servers", s.isKnown)
}

// isKnown reports whether the client knows the servers, and no others.
func (s *stage) isKnown(context.Context) bool {
	known := s.client.Servers()
	for _, srv := range s.servers {
		if !slices.ContainsFunc(known, func(k discovery.Server) bool { return k.ID == srv.id }) {
			return false
		}
	}
	return len(known) == len(s.servers)
}

// answers waits until a server has decided a question of another client's, who
// knows no other.
func (s *stage) answers(srv *server) {
	s.t.Helper()
	member, err := discovery.ParseServer(fmt.Sprintf("%v@%s", srv.id, srv.addr))
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := weir.New(weir.Config{Key: s.key, Servers: []discovery.Server{member}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	s.await("the restarted server to answer", func(ctx context.Context) bool {
		d, err := c.Acquire(ctx, question)
		return err == nil && d.Server() == srv.id
	})
}

// write puts a whole file in place at once.
func (s *stage) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// question is far below its limit: a rejection would be a mistake.
var question = weir.Request{Resources: []weir.Resource{weir.Bucket("soak", 1<<31, time.Second).Take(1)}}
