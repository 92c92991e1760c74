package load

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// echo is a network on which every request is granted before Write returns.
type echo struct {
	credential *wire.Credential
	sealer     *wire.Sealer
	answer     wire.Answer
	env        wire.Envelope
	scratch    wire.Scratch
	asked      wire.RequestView
	in         []udp.Datagram
	n          int
}

func (e *echo) Listen(netip.AddrPort, udp.Options) (udp.Conn, error) { return &echoConn{echo: e}, nil }

type echoConn struct {
	udp.Conn
	*echo
}

func (c *echoConn) Write(ds []udp.Datagram) (int, error) {
	for i := range ds {
		if wire.ParseEnvelope(ds[i].Payload(), &c.env) != nil {
			panic("no datagram of the protocol")
		}
		pdu, err := c.credential.Open(&c.env, &c.scratch)
		if err != nil || wire.ParseRequest(pdu, &c.asked) != nil {
			continue // a report
		}
		d := &c.in[c.n]
		c.n++
		h := c.env.Header
		h.Steering = 1
		b, err := c.credential.AppendResponse(d.Buf[:0], c.sealer, &h, &c.asked, &c.answer)
		if err != nil {
			panic(err)
		}
		d.N = len(b)
	}
	return len(ds), nil
}

// steady is a flow of a closed loop that has some requests in flight.
func steady(t testing.TB, inFlight int, work Work) (step func()) {
	t.Helper()
	key := newKey(t, apikey.AuthAES)
	e := &echo{
		in:     buffers(inFlight, wire.BufferSize, wire.BufferSize),
		answer: wire.Answer{Latencies: make([]uint32, work.Guards), Rates: make([]uint32, work.Resources), Deficits: make([]uint16, work.Resources)},
	}
	var err error
	if e.credential, err = wire.NewCredential(key); err != nil {
		t.Fatal(err)
	}
	cfg, err := Config{
		Keys: []apikey.Key{key}, Targets: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")},
		Flows: 1, InFlight: inFlight, Work: work, For: time.Hour, Stack: e,
	}.fill()
	if err != nil {
		t.Fatal(err)
	}
	if e.sealer, err = wire.NewSealer(cfg.Entropy); err != nil {
		t.Fatal(err)
	}
	r := newRun(cfg)
	n, err := newTenant(&cfg, key)
	if err != nil {
		t.Fatal(err)
	}
	r.tenants = append(r.tenants, n)
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	r.start = time.Now()
	r.end.Store(int64(cfg.For))
	r.fillLoops()
	f := r.flows[0]
	read := &reader{flow: f, conn: f.conn}
	got := buffers(inFlight, wire.BufferSize, wire.BufferSize)
	t.Cleanup(func() {
		if f.tally.granted == 0 || f.tally.lost+f.tally.wrong[wrongShape]+f.tally.wrong[wrongStranger]+f.tally.wrong[wrongUnreadable] > 0 {
			t.Errorf("%+v", f.tally)
		}
	})
	return func() {
		got, e.in = e.in, got
		came := e.n
		e.n = 0
		read.took(got[:came], r.now())
		read.look(r.now())
	}
}

// Taking answers and asking again allocates nothing.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	step := steady(t, 16, Work{Resources: 3, Buckets: 1000, Zipf: 1, Guards: 2, Reports: 0.5})
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations for 16 requests", n)
	}
}

// BenchmarkSteady is the cost of one request: asked, sealed, opened and answered by a server that
// decides nothing, opened, judged and counted.
func BenchmarkSteady(b *testing.B) {
	const inFlight = 16
	for name, work := range map[string]Work{
		"1bucket":         {Resources: 1},
		"3buckets1guard":  {Resources: 3, Buckets: 100, Guards: 1},
		"of50000-by-zipf": {Resources: 1, Buckets: 50_000, Zipf: 1},
	} {
		b.Run(name, func(b *testing.B) {
			step := steady(b, inFlight, work)
			b.ReportAllocs()
			for i := 0; i < b.N; i += inFlight {
				step()
			}
		})
	}
}
