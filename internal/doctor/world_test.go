package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// today is what the clocks of a world show at first: virtual time begins before the
// first server ID, and before this program was built.
var today = time.Date(2050, time.January, 1, 0, 0, 0, 0, time.UTC)

// world is a network in memory, under virtual time, with the machine that the doctor
// runs on and real r-servers.
type world struct {
	t      *testing.T
	net    *udp.Network
	host   *udp.NetworkHost
	key    apikey.Key
	off    time.Duration // of the doctor's clock
	age    time.Duration // that servers have when serve returns
	closed map[netip.AddrPort]bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, net: udp.NewNetwork(), key: newKey(t, apikey.AuthAES, 7), age: 10 * time.Minute, closed: map[netip.AddrPort]bool{}}
	w.host = w.net.Host(netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("fd00::1:1"))
	return w
}

func newKey(t *testing.T, auth apikey.Auth, id uint64, change ...func(*apikey.Quotas)) apikey.Key {
	t.Helper()
	q := apikey.DefaultQuotas()
	for _, f := range change {
		f(&q)
	}
	k, err := apikey.New(auth, id, q, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// epoch is what is added to virtual time.
func epoch() time.Duration {
	const begin = 946684800 // of virtual time, 2000-01-01
	return today.Sub(time.Unix(begin, 0))
}

// now is the right time.
func now() time.Time { return time.Now().Add(epoch()) }

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// clock is a server's, off by some time.
type clock struct{ off time.Duration }

func (c clock) Now() limiter.Time {
	return limiter.Time{Mono: int64(now().Sub(today)), Wall: uint64(now().Add(c.off).UnixMilli())}
}

// at makes a machine with addresses such as "10.0.0.1:29292".
func (w *world) at(addrs ...string) *udp.NetworkHost {
	var ips []netip.Addr
	for _, a := range addrs {
		ips = append(ips, netip.MustParseAddrPort(a).Addr())
	}
	return w.net.Host(ips...)
}

// serve runs a real r-server of the world's key until it has some age, and on.
func (w *world) serve(addrs ...string) discovery.Server {
	return w.serveWith(func(*server.Config) {}, addrs...)
}

func (w *world) serveWith(change func(*server.Config), addrs ...string) discovery.Server {
	w.t.Helper()
	cfg := server.Config{
		Listen:  addrs,
		Tenants: []server.Tenant{{Keys: []apikey.Key{w.key}, InsecureAuth: true}},
		Drain:   server.NoDrain,
		Clock:   clock{},
		Stack:   w.at(addrs...),
	}
	change(&cfg)
	s, err := server.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	pass(w.age)
	return discovery.Server{ID: s.ID(), Addrs: s.Addrs()}
}

// config is for servers that are given.
func (w *world) config(servers ...discovery.Server) Config {
	return Config{
		Client: weir.Config{Key: w.key, Servers: servers},
		Stack:  w.host,
		Now:    func() time.Time { return now().Add(w.off) },
		Dial:   w.dial,
		Knock:  w.knock,
	}
}

// knock is refused where the test says that a port is closed.
func (w *world) knock(ctx context.Context, to netip.AddrPort, _ []byte) error {
	if w.closed[to] {
		return syscall.ECONNREFUSED
	}
	<-ctx.Done()
	return nil
}

// run examines, and holds what every report must hold.
func (w *world) run(cfg Config) *Report {
	w.t.Helper()
	begin := time.Now()
	r, err := Run(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		w.t.Errorf("it took %v", took)
	}
	checkOutput(w.t, r, cfg.Client.Key)
	return r
}

// checkOutput holds that a report fits a terminal and shows no secret.
func checkOutput(t *testing.T, r *Report, key apikey.Key) {
	t.Helper()
	var shown bytes.Buffer
	if err := Write(&shown, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shown.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if err := json.NewEncoder(&shown).Encode(r); err != nil {
		t.Fatal(err)
	}
	secret := key.Secret()
	for _, s := range []string{key.Encode(), hex.EncodeToString(secret[:]), string(secret[:])} {
		if key.Auth() != apikey.AuthNone && strings.Contains(shown.String(), s) {
			t.Error("the secret is shown")
		}
	}
}

// want holds that a report has a verdict and exactly these diagnoses.
func (w *world) want(r *Report, v Verdict, codes ...string) {
	w.t.Helper()
	var got []string
	for _, d := range r.Diagnoses {
		got = append(got, d.Code)
	}
	if r.Verdict != v || !slices.Equal(got, codes) {
		var s bytes.Buffer
		_ = Write(&s, r)
		w.t.Errorf("%s %q, want %s %q\n%s", r.Verdict, got, v, codes, &s)
	}
}

// says holds that a diagnosis has some words in it.
func (w *world) says(r *Report, code string, words ...string) {
	w.t.Helper()
	for _, d := range r.Diagnoses {
		if d.Code != code {
			continue
		}
		for _, s := range words {
			if !strings.Contains(d.Says+"\n"+d.Do+"\n"+d.Unsure, s) {
				w.t.Errorf("%s lacks %q:\n%s\n-> %s\n? %s", code, s, d.Says, d.Do, d.Unsure)
			}
		}
		return
	}
	w.t.Errorf("no diagnosis %s", code)
}
