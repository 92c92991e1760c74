package sim

import (
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// A script is a run that a test writes by hand, record by record, and has measured. Times are in
// milliseconds. The policy is the default one: a horizon of 60 ms.
type script struct {
	t     tb
	m     *Measurer
	cred  *wire.Credential
	ids   [3]ident.ServerID
	asked map[uint64][]byte // datagrams
	begun map[uint64]time.Duration
	ports [4]netip.AddrPort
}

// tb is what a script needs of a test; rapid's have it, too.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

const at = 1_000_000 // nanoseconds of a millisecond

// scriptScenario has three servers, four clients of one group, and a service.
func scriptScenario() *Scenario {
	return &Scenario{
		Name: "script", Length: 10 * time.Second, Policy: policy.Default(),
		Servers: []Server{{Name: "a", Age: 3 * time.Hour}, {Name: "b", Age: 2 * time.Hour}, {Name: "c", Age: time.Hour}},
		Clients: []Clients{{Name: "client", Count: 4, Mix: []Choice{
			{},
			{Guard: []Guard{{Tracker: "other", Threshold: time.Millisecond}, {Tracker: "work", Threshold: 100 * time.Millisecond}}, Work: "work"},
			{Work: "work"},
		}}},
		Services: []Service{{Name: "work", Parallel: 2, Tracker: "work"}},
		Faults: []Fault{
			{Kind: FaultPartition, For: time.Second}, {Kind: FaultKill, For: time.Second}, {Kind: FaultForget},
		},
	}
}

func newScript(t tb, s *Scenario, o MeasureOptions) *script {
	t.Helper()
	key, err := apikey.New(apikey.AuthNone, 1, apikey.DefaultQuotas(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &script{t: t, asked: map[uint64][]byte{}, begun: map[uint64]time.Duration{}}
	if p.cred, err = wire.NewCredential(key); err != nil {
		t.Fatal(err)
	}
	if p.m, err = NewMeasurer(s, o); err != nil {
		t.Fatal(err)
	}
	p.put(&Record{Kind: RecordRun, Key: key})
	for i := range p.ids {
		p.up(0, i, ident.ServerID(1000*(i+1)))
	}
	for i := range p.ports {
		p.ports[i] = port(50_000)
	}
	return p
}

func port(n uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), n) }

func (p *script) put(r *Record) { p.m.Record(r) }

func (p *script) finish() *Measures {
	p.t.Helper()
	m, err := p.m.Finish()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// up starts a server under an ID.
func (p *script) up(ms time.Duration, server int, id ident.ServerID) {
	p.ids[server] = id
	p.put(&Record{At: ms * at, Kind: RecordServer, Server: server, ID: id, Up: true})
}

func (p *script) fault(ms time.Duration, fault int, up bool) {
	p.put(&Record{At: ms * at, Kind: RecordFault, Fault: fault, Up: up})
}

// ask has client 0 submit a request to the servers that there are, and send it to all.
func (p *script) ask(ms time.Duration, number uint64, takes ...wire.Resource) {
	p.submit(ms, number, 0, 0, nil)
	p.firstSends(ms, number, takes, nil)
}

func (p *script) submit(ms time.Duration, number uint64, client, choice int, err error) {
	p.begun[number] = ms
	servers := make([]core.Server, len(p.ids))
	for i, id := range p.ids {
		servers[i].ID = id
	}
	p.put(&Record{At: ms * at, Kind: RecordSubmit, Client: client, Request: number, Choice: choice, Servers: servers, Err: err})
}

func (p *script) firstSends(ms time.Duration, number uint64, takes []wire.Resource, guards []wire.Guard) {
	h := wire.Header{Timestamp: uint64(ms)}
	h.UniqueID[0], h.UniqueID[1] = byte(number), byte(number>>8)
	datagram, err := p.cred.AppendRequest(nil, nil, &h, &wire.Request{Layout: wire.Layout2, DedupTTL: 60, Resources: takes, Guards: guards})
	if err != nil {
		p.t.Fatal(err)
	}
	p.asked[number] = datagram
	for i := range p.ids {
		p.send(ms, number, i, core.SendFirst)
	}
}

func (p *script) send(ms time.Duration, number uint64, server int, kind core.SendKind) {
	p.put(&Record{At: ms * at, Kind: RecordSend, Request: number, Server: server, Send: kind, Port: p.ports[0], Payload: p.asked[number]})
}

func (p *script) arrive(ms time.Duration, number uint64, server, queue int) {
	p.put(&Record{At: ms * at, Kind: RecordArrive, Request: number, Server: server, Send: core.SendFirst, Queue: queue})
}

func (p *script) serve(ms time.Duration, number uint64, server int, v limiter.Verdict) {
	p.put(&Record{At: ms * at, Kind: RecordServe, Request: number, Server: server, Send: core.SendFirst, Verdict: v, Payload: p.asked[number]})
}

func (p *script) respond(ms time.Duration, number uint64, server int, v core.DatagramVerdict, granted, keep bool) {
	p.put(&Record{
		At: ms * at, Kind: RecordResponse, Request: number, Server: server, Received: v, Granted: granted, Keep: keep, Port: p.ports[0],
	})
}

// decide ends a request by the answer of a server; -1 is none.
func (p *script) decide(ms time.Duration, number uint64, server int, o core.Outcome) {
	c := &core.Completion{Outcome: o, Elapsed: (ms - p.begun[number]) * at}
	if server >= 0 {
		c.Server, c.Oldest = p.ids[server], server == 0
	}
	p.put(&Record{At: ms * at, Kind: RecordDecide, Request: number, Completion: c, Granted: o == core.Granted})
}

// bucketOf returns a demand on a bucket with a window of 100 ms.
func bucketOf(name string, limit uint32, tokens uint16) wire.Resource {
	return wire.Resource{Bucket: ident.Bucket(name, 100, limit), Window: 100, Rate: limit, Tokens: tokens}
}

// value returns a scalar of a run.
func value(t tb, m *Measures, name string) float64 {
	t.Helper()
	for _, s := range Scalars() {
		if s.Name == name {
			v, ok := s.Value(m)
			if !ok {
				t.Fatalf("%s has no value", name)
			}
			return v
		}
	}
	t.Fatalf("there is no scalar %s", name)
	return 0
}

// wants holds scalars to what was computed by hand.
func wants(t tb, m *Measures, want map[string]float64) {
	t.Helper()
	for name, w := range want {
		if got := value(t, m, name); got != w {
			t.Errorf("%s: %v, want %v", name, got, w)
		}
	}
}
