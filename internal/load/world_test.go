package load

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const serverPort = 29292

// world is a network in memory, under virtual time, with a machine that puts load on scripted servers.
type world struct {
	t    *testing.T
	net  *udp.Network
	host *udp.NetworkHost
	key  apikey.Key
}

// inWorld runs a test in virtual time. The way to a server takes 1 ms, and the way back.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: udp.NewNetwork(), key: newKey(t, apikey.AuthAES)}
		w.host = w.net.Host(netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("fd00::1:1"))
		w.link(func(udp.Packet, *udp.Fate) {})
		test(t, w)
	})
}

func newKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	q := apikey.DefaultQuotas()
	q.DedupTTL = 2000
	k, err := apikey.New(auth, 7, q, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// link lets change what becomes of a packet.
func (w *world) link(change func(udp.Packet, *udp.Fate)) {
	w.net.SetLink(func(p udp.Packet) udp.Fate {
		f := udp.Fate{Delay: time.Millisecond}
		change(p, &f)
		return f
	})
}

// up reports whether a packet goes to a server.
func up(p udp.Packet) bool { return p.To.Port() == serverPort }

// serve runs a scripted server of the world's key.
func (w *world) serve(addr string) *responder.Responder {
	w.t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(addr), serverPort)
	return responder.Start(w.t, w.net.Host(at.Addr()), at.String(), 1000, w.key)
}

// config is a load of a second for some servers, in a closed loop of ten by two sockets.
func (w *world) config(servers ...*responder.Responder) Config {
	cfg := Config{Keys: []apikey.Key{w.key}, Flows: 2, InFlight: 10, For: time.Second, Steer: true, Stack: w.host}
	for _, s := range servers {
		cfg.Targets, cfg.Servers = append(cfg.Targets, s.Member().Addrs[0]), append(cfg.Servers, s.ID)
	}
	return cfg
}

func (w *world) run(cfg Config) *Result {
	w.t.Helper()
	r, err := Run(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Granted+r.Denied+r.Lost != r.Sent || r.Latency.N != int64(r.Sent+r.Skipped) {
		w.t.Errorf("the counts do not add up: %+v", r)
	}
	return r
}

// answerer makes answers that no server would give.
type answerer struct {
	t          *testing.T
	credential *wire.Credential
	sealer     *wire.Sealer
}

func newAnswerer(t *testing.T, key apikey.Key) *answerer {
	t.Helper()
	c, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := wire.NewSealer(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &answerer{t, c, s}
}

// grant grants a request other than the one that was asked.
func (a *answerer) grant(h *wire.Header, req *wire.Request) []byte {
	a.t.Helper()
	plain := newAnswerer(a.t, newKey(a.t, apikey.AuthNone))
	asked, err := plain.credential.AppendRequest(nil, plain.sealer, &wire.Header{UniqueID: h.UniqueID, Timestamp: 1}, req)
	if err != nil {
		a.t.Fatal(err)
	}
	var e wire.Envelope
	var scratch wire.Scratch
	var v wire.RequestView
	if err := wire.ParseEnvelope(asked, &e); err != nil {
		a.t.Fatal(err)
	}
	pdu, err := plain.credential.Open(&e, &scratch)
	if err == nil {
		err = wire.ParseRequest(pdu, &v)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := a.credential.AppendResponse(nil, a.sealer, h, &v, &wire.Answer{
		Latencies: make([]uint32, v.Guards()), Rates: make([]uint32, v.Resources()), Deficits: make([]uint16, v.Resources()),
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// slowStack opens sockets on which sending takes some time, and what was read comes up late.
type slowStack struct {
	udp.Stack
	takes func() time.Duration
	reads time.Duration
}

func (s slowStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := s.Stack.Listen(addr, o)
	return &slowConn{c, s}, err
}

type slowConn struct {
	udp.Conn
	stack slowStack
}

func (c *slowConn) Write(ds []udp.Datagram) (int, error) {
	if c.stack.takes != nil {
		time.Sleep(c.stack.takes())
	}
	return c.Conn.Write(ds)
}

func (c *slowConn) Read(ds []udp.Datagram) (int, error) {
	n, err := c.Conn.Read(ds)
	if n > 0 {
		time.Sleep(c.stack.reads)
	}
	return n, err
}
