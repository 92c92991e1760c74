package doctor

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/server"
)

// onLoopback runs a real server on this machine's loopback.
func onLoopback(t *testing.T, key apikey.Key) *server.Server {
	t.Helper()
	s, err := server.New(server.Config{
		Listen: []string{"127.0.0.1:0"}, Tenants: []server.Tenant{{Keys: []apikey.Key{key}}},
		DNS: "127.0.0.1:0", Zone: "rl.test", Admin: "127.0.0.1:0", Drain: server.NoDrain,
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	return s
}

// patient is a policy that no busy machine decides.
func patient(t *testing.T) (apikey.Key, policy.Policy) {
	t.Helper()
	key := newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.DedupTTL = 2000 })
	return key, mustPolicy(t, "unit=500ms replays=2")
}

// Over real sockets, real DNS and a real client all is well, and the server has no
// bucket and no tracker more than before.
func TestOnThisMachine(t *testing.T) {
	key, policy := patient(t)
	s := onLoopback(t, key)
	resolver, err := discovery.NewDNS(s.DNSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{Client: weir.Config{Key: key, Zone: "rl.test", Resolver: resolver, Policy: policy}})
	if err != nil {
		t.Fatal(err)
	}
	checkOutput(t, r, key)
	if r.Path == nil || r.Path.Decided != acquires || len(r.Path.By) != 1 || r.Path.By[0] != s.ID() || r.DNS.Asked != s.DNSAddr().String() {
		t.Errorf("%+v %+v", r.DNS, r.Path)
	}
	metrics := scrape(t, s)
	for _, name := range []string{"weir_live_buckets", "weir_live_trackers"} {
		if v := metrics[name+`{tenant="7"}`]; v != "0" {
			t.Errorf("%s is %q", name, v)
		}
	}
	if v := metrics[`weir_decisions_total{outcome="granted",tenant="7"}`]; v == "" || v == "0" {
		t.Errorf("granted %q", v)
	}
}

// scrape reads a server's metrics.
func scrape(t *testing.T, s *server.Server) map[string]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%v/metrics", s.AdminAddr()), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics := make(map[string]string)
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			metrics[name] = value
		}
	}
	return metrics
}

// The machine's own ICMP says that a port is closed.
func TestPortClosedOnThisMachine(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	c, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := c.LocalAddr()
	c.Close() // nobody else takes it so soon
	r, err := Run(t.Context(), Config{Client: weir.Config{
		Key: key, Servers: []discovery.Server{{ID: 1, Addrs: []netip.AddrPort{at}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Servers[0].Endpoints[0]; e.State != Closed || r.Verdict != NoDecision {
		t.Errorf("%+v", e)
	}
}

// Knocking at a port that is open hears nothing, and ends when it is told to.
func TestKnockHearsNothing(t *testing.T) {
	c, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := knock(ctx, c.LocalAddr(), []byte("x")); err != nil || ctx.Err() == nil {
		t.Errorf("%v, and there was time left: %v", err, ctx.Err() == nil)
	}
}
