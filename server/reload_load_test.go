package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// counted returns how many datagrams a tenant's counters account for.
func counted(s *tenantState) (n uint64) {
	for r := range reasonCount {
		n += s.counts.dropped[r].Load()
	}
	for v := range s.counts.verdicts {
		n += s.counts.verdicts[v].Load()
	}
	return n
}

// asker asks one question after the other until it is stopped, each of which must be
// answered and granted.
type asker struct {
	t      *testing.T
	socket []*socket    // one for each key
	use    atomic.Int32 // which of them
	asked  []atomic.Uint64
}

func newAsker(t *testing.T, s *running, number byte, keys ...apikey.Key) *asker {
	a := &asker{t: t, asked: make([]atomic.Uint64, len(keys))}
	for i, k := range keys {
		c := dial(t, k, s.Addrs()[0])
		c.header.UniqueID[15], c.header.UniqueID[14] = number, byte(i)
		a.socket = append(a.socket, c)
	}
	return a
}

func (a *asker) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		i := a.use.Load()
		c := a.socket[i]
		c.fresh()
		b, _, err := c.exchange(c.request(ever()))
		if err != nil {
			a.t.Errorf("key %v: a question is not answered: %v", c.header.KeyID, err)
			return
		}
		if r := c.open(b, wire.Layout2); !r.granted() {
			a.t.Errorf("key %v: rejected: %+v", c.header.KeyID, r.view.Resource(0))
		}
		a.asked[i].Add(1)
	}
}

// total returns how many questions were asked, and answered.
func (a *asker) total() (n uint64) {
	for i := range a.asked {
		n += a.asked[i].Load()
	}
	return n
}

// turn makes the asker use another key, and waits until it has: as it asks one question
// after the other, nothing of the key before is under way then.
func (a *asker) turn(key int32) {
	before := a.asked[key].Load()
	a.use.Store(key)
	eventually(a.t, "a question is asked with the other key", func() bool { return a.asked[key].Load() > before || a.t.Failed() })
}

// publish puts a version of a file in place, by turns by renaming it over the one before and,
// as Kubernetes does, by switching a link on the way to it.
func publish(t *testing.T, path string, round int, text string) {
	t.Helper()
	if round%3 == 0 {
		writeFile(t, path, text)
		return
	}
	link := func(target, at string) {
		t.Helper()
		if err := errors.Join(os.Symlink(target, at+".new"), os.Rename(at+".new", at)); err != nil {
			t.Fatal(err)
		}
	}
	top, version := filepath.Dir(path), fmt.Sprint("..", round)
	if err := os.Mkdir(filepath.Join(top, version), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(top, version, filepath.Base(path)), text)
	link(version, filepath.Join(top, "..data"))
	if _, err := os.Readlink(path); err != nil { // a file is in its place
		link(filepath.Join("..data", filepath.Base(path)), path)
	}
}

// While the file changes in every way that there is, tenants that are in it throughout are
// asked without pause. Every question is answered, no state is lost, and the counters
// account for every datagram that was sent, also of tenants that come and go, and of those
// over their rate.
func TestEveryReloadUnderLoad(t *testing.T) {
	shop := newKey(t, apikey.AuthAES, 1)
	small := newKey(t, apikey.AuthAES, 1, func(q *apikey.Quotas) {
		q.RateBuckets, q.LatencyServices, q.LatencyBufferSize, q.MetricsLabels = 1, 1, 1, 1
	})
	older := newKey(t, apikey.AuthCookie, 2)
	newer := newKey(t, apikey.AuthAES, 2)
	guest, capped := newKey(t, apikey.AuthAES, 3), newKey(t, apikey.AuthAES, 4)

	with := func(line string, fields string) string { return strings.Replace(line, "name:", fields+", name:", 1) }
	shops := []string{
		tenantLine("shop", shop),
		with(tenantLine("shop", small), "mode: shadow"),
		with(tenantLine("shop", small), "estimator: p99, pacing: off"),
		with(tenantLine("renamed", shop), "max_rate: 1000000000"),
		with(tenantLine("shop", shop), "mode: enforce, estimator: mean, max_rate: 100000000"),
	}
	cappedLines := []string{with(tenantLine("capped", capped), "max_rate: 1"), with(tenantLine("capped", capped), "max_rate: 2, mode: shadow"), tenantLine("capped", capped)}
	// What a rotation goes through, and the key that is in use before each step.
	rotation := []struct {
		use  int32
		line string
	}{
		{0, tenantLine("rotated", older)},
		{0, tenantLine("rotated", newer, older)},
		{1, tenantLine("rotated", newer)},
		{1, tenantLine("rotated", older, newer)},
	}
	version := func(round int) string {
		lines := []string{shops[round%len(shops)], rotation[round%len(rotation)].line, cappedLines[round%len(cappedLines)]}
		if round%2 == 1 {
			lines = append(lines, tenantLine("guest", guest))
		}
		return tenantsFile(lines...)
	}
	path := tempFile(t, version(0))
	s := start(t, Config{TenantsFile: path, MemoryLimit: 700 << 20}) // the guest clamps the others

	stop := make(chan struct{})
	var running sync.WaitGroup
	first, second, rotated := newAsker(t, s, 1, shop), newAsker(t, s, 2, shop), newAsker(t, s, 3, older, newer)
	for _, a := range []*asker{first, second, rotated} {
		running.Go(func() { a.run(stop) })
	}
	shopState, rotatedState, cappedState := s.registry.tenants()[1].state, s.registry.tenants()[2].state, s.registry.tenants()[4].state
	guestSocket, cappedSocket := dial(t, guest, s.Addrs()[0]), dial(t, capped, s.Addrs()[0])
	send := func(c *socket, b []byte) {
		t.Helper()
		if _, err := c.conn.WriteToUDPAddrPort(b, c.to); err != nil {
			t.Fatal(err)
		}
	}
	cappedSent, strangers := uint64(0), uint64(0)
	for round := 1; round <= 60 && !t.Failed(); round++ {
		step := rotation[round%len(rotation)]
		if rotated.use.Load() != step.use {
			rotated.turn(step.use)
		}
		if round%5 == 0 {
			writeFile(t, path, "tenants: [{broken")
			if s.Reload() == nil {
				t.Error("a broken file is taken")
			}
		}
		publish(t, path, round, version(round))
		if round%6 == 5 { // nobody says so
			eventually(t, "the file is followed", func() bool {
				s.reloading.Lock()
				defer s.reloading.Unlock()
				return s.loaded == sha256.Sum256([]byte(version(round)))
			})
		} else if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			cappedSocket.fresh()
			send(cappedSocket, cappedSocket.request(ever()))
			cappedSent++
		}
		eventually(t, "the capped tenant's datagrams are counted", func() bool { return counted(cappedState) == cappedSent })
		if round%2 == 1 {
			state := s.registry.tenants()[3].state
			// What comes back takes nothing that a copy of what it executed could be.
			guestSocket.at = max(guestSocket.at+uint64(ever().DedupTTL)+1, uint64(time.Now().UnixMilli()))
			for range 5 {
				guestSocket.acquire(ever())
			}
			if n := state.counts.verdicts[limiter.Granted].Load(); n != 5 || counted(state) != n {
				t.Errorf("round %d: of the guest's 5 questions %d are counted", round, n)
			}
		} else {
			guestSocket.fresh()
			send(guestSocket, guestSocket.request(ever()))
			strangers++
			eventually(t, "the guest's datagram is dropped", func() bool { return s.counts.dropped[dropUnknownKey].Load() == strangers })
		}
		// Load on every version, by events.
		a, b, c := first.total(), second.total(), rotated.total()
		eventually(t, "everybody asks", func() bool {
			return t.Failed() || first.total() > a+2 && second.total() > b+2 && rotated.total() > c+2
		})
	}
	close(stop)
	running.Wait()

	for _, c := range []struct {
		name  string
		state *tenantState
		asked uint64
	}{{"shop", shopState, first.total() + second.total()}, {"rotated", rotatedState, rotated.total()}} {
		if n := c.state.counts.verdicts[limiter.Granted].Load(); n != c.asked || counted(c.state) != n {
			t.Errorf("%s: %d questions were asked, %d granted, %d datagrams counted", c.name, c.asked, n, counted(c.state))
		}
	}
	if s.registry.tenants()[1].state != shopState || s.registry.tenants()[2].state != rotatedState {
		t.Error("a tenant that stayed has another state")
	}
	r := first.socket[0].acquire(ever())
	if got, want := uint64(r.view.Resource(0).Rate), first.total()+second.total()+1; got != want {
		t.Errorf("the shop's bucket has %d tokens, want %d", got, want)
	}
	if n := rotatedState.counts.oldKeyUses.Load(); n == 0 || n >= rotated.total() {
		t.Errorf("%d of %d datagrams were opened by an old key", n, rotated.total())
	}
	if n := cappedState.counts.dropped[dropMaxRate].Load(); n == 0 || n == cappedSent {
		t.Errorf("%d of %d datagrams were over the rate", n, cappedSent)
	}
	for r := range reasonCount {
		if n := s.counts.dropped[r].Load(); n != 0 && r != dropUnknownKey {
			t.Errorf("%d datagrams dropped as %v", n, r)
		}
	}
	if n := s.counts.readErrors.Load() + s.counts.writeErrors.Load(); n != 0 {
		t.Errorf("%d errors of sockets", n)
	}
}
