package limiter

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// wallStart is where the wall clock of tests begins.
const wallStart = 1_800_000_000_000

// testConfig is what tests change a field or two of.
func testConfig() Config {
	return Config{
		RateBuckets: 1024, LatencyServices: 64, LatencyBufferSize: 32, DedupTTLMax: 300, WindowMax: 1<<32 - 1,
		Identities: 1 << 16, Seed: [16]byte{1, 2, 3}, Start: wallStart - 1,
	}
}

// rig is an engine with clocks that a test sets, and a client of it.
type rig struct {
	t   testing.TB
	e   *Engine
	now Time
	ids uint64
	ans wire.Answer
}

func newRig(t testing.TB, c Config) *rig {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, e: e, now: Time{Mono: 1, Wall: wallStart}}
}

// pass lets both clocks go on by nanoseconds, the wall clock by whole milliseconds.
func (r *rig) pass(ns int64) {
	before := r.now.Mono / nsPerMs
	r.now.Mono += ns
	r.now.Wall += uint64(r.now.Mono/nsPerMs - before)
}

// header returns the header of a new identity, stamped now.
func (r *rig) header() wire.Header {
	r.ids++
	var u wire.UniqueID
	binary.LittleEndian.PutUint64(u[:], r.ids)
	return wire.Header{UniqueID: u, Timestamp: r.now.Wall}
}

// ask decides a new request.
func (r *rig) ask(resources ...wire.Resource) Verdict {
	r.t.Helper()
	return r.send(r.header(), wire.Request{Resources: resources})
}

// send decides a request under a header.
func (r *rig) send(h wire.Header, q wire.Request) Verdict {
	r.t.Helper()
	v := requestView(r.t, q)
	return r.e.Decide(r.now, &h, &v, &r.ans)
}

// report takes in a report of a new identity.
func (r *rig) report(obs ...wire.Observation) Verdict {
	r.t.Helper()
	h := r.header()
	v := reportView(r.t, wire.Layout2, obs...)
	return r.e.Observe(r.now, &h, &v)
}

// guard asks for a tracker's estimate, in a request for nothing else.
func (r *rig) guard(g wire.Guard) uint32 {
	r.t.Helper()
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{g}}); v.Dropped() {
		r.t.Fatalf("the guard's request: %v", v)
	}
	return r.ans.Latencies[0]
}

// credential is of a key in none mode.
var credential = func() *wire.Credential {
	k, err := apikey.New(apikey.AuthNone, 7, apikey.DefaultQuotas(), nil)
	if err != nil {
		panic(err)
	}
	c, err := wire.NewCredential(k)
	if err != nil {
		panic(err)
	}
	return c
}()

// requestView sends a request through the wire. Layout 2 and a dedup TTL of 60 ms are the defaults.
func requestView(t testing.TB, q wire.Request) (v wire.RequestView) {
	t.Helper()
	if q.Layout == 0 {
		q.Layout = wire.Layout2
	}
	if q.DedupTTL == 0 {
		q.DedupTTL = 60
	}
	b, err := credential.AppendRequest(nil, nil, &wire.Header{}, &q)
	if err == nil {
		err = wire.ParseRequest(opened(t, b), &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func reportView(t testing.TB, l wire.Layout, obs ...wire.Observation) (v wire.ReportView) {
	t.Helper()
	b, err := credential.AppendReport(nil, nil, &wire.Header{}, l, obs)
	if err == nil {
		err = wire.ParseReport(opened(t, b), &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func opened(t testing.TB, datagram []byte) []byte {
	t.Helper()
	var e wire.Envelope
	if err := wire.ParseEnvelope(datagram, &e); err != nil {
		t.Fatal(err)
	}
	pdu, err := credential.Open(&e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pdu
}

// take is a demand of tokens on a bucket.
func take(name string, windowMs, rate uint32, tokens uint16) wire.Resource {
	return wire.Resource{Bucket: ident.Bucket(name, windowMs, rate), Window: windowMs, Rate: rate, Tokens: tokens}
}

// estimateOf returns the estimate of the tracker with a key.
func (t *trackers) estimateOf(key *trackerKey, now int64) uint32 {
	latency, _ := t.judge(key, 0, now)
	return latency
}
