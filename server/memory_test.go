package server

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// A tenant at its whole default quotas takes 240 MB and half a minute to fill.
var full = flag.Bool("full", false, "fill tenants at default quotas, not at an eighth of them")

// heapBytes returns what is alive on the heap.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// glutton is a client that uses up all that a tenant may have.
type glutton struct {
	w     *worker
	clock *fakeClock
	c     *client
	buf   []byte
	fresh int // how many more identities there is room for, before time has to pass
}

func (g *glutton) send(b []byte, err error) {
	g.c.tb.Helper()
	if err != nil {
		g.c.tb.Fatal(err)
	}
	g.buf = b
	g.w.ask(b)
	g.c.next()
}

// breathe lets identities expire before there is no room for more, which would raise the
// floor.
func (g *glutton) breathe(r *room) {
	if g.fresh--; g.fresh < 0 {
		g.fresh = r.engine.Identities / 4
		g.clock.advance(6 * time.Second)
		g.c.header.Timestamp = g.clock.Now().Wall
	}
}

func (g *glutton) ask(r *wire.Request) {
	r.Layout, r.DedupTTL = wire.Layout2, 300
	g.send(g.c.credential.AppendRequest(g.buf[:0], g.c.sealer, &g.c.header, r))
}

// numberedBlock is a resource in bucket i, which never forgets and never fills.
func numberedBlock(i int) wire.Resource {
	return wire.Resource{Bucket: ident.ID{byte(i), byte(i >> 8), byte(i >> 16)}, Window: 1 << 31, Rate: 1 << 31, Tokens: 1}
}

// fill fills every bucket, tracker, pacer, identity, answer and label of a room.
func (g *glutton) fill(r *room) {
	const blocks, observations, rounds = 40, 30, 129
	q := &r.engine
	var ask wire.Request
	for range rounds {
		for i := 0; i < int(q.RateBuckets); i += blocks {
			ask.Resources = ask.Resources[:0]
			for j := i; j < min(i+blocks, int(q.RateBuckets)); j++ {
				ask.Resources = append(ask.Resources, numberedBlock(j))
			}
			g.ask(&ask)
			g.breathe(r)
		}
		g.clock.advance(1) // ns: another group
	}
	tracker := func(i int) ident.ID { return ident.ID{byte(i), byte(i >> 8), 1} }
	for i := 0; i < int(q.LatencyServices); i += observations {
		var seen []wire.Observation
		for j := i; j < min(i+observations, int(q.LatencyServices)); j++ {
			seen = append(seen, wire.Observation{Tracker: tracker(j), TTL: 1 << 31, MaxSamples: 1 << 15, Latency: 50})
		}
		for range q.LatencyBufferSize {
			g.send(g.c.credential.AppendReport(g.buf[:0], g.c.sealer, &g.c.header, wire.Layout2, seen))
			g.breathe(r)
		}
	}
	for threshold := range uint32(8) {
		for i := 0; i < int(q.LatencyServices); i += observations {
			var guards wire.Request
			for j := i; j < min(i+observations, int(q.LatencyServices)); j++ {
				guards.Guards = append(guards.Guards, wire.Guard{Tracker: tracker(j), TTL: 1 << 31, MaxSamples: 1 << 15, Threshold: 1000 + threshold})
			}
			g.ask(&guards)
			g.breathe(r)
		}
	}
	for i := range 2 * r.labels {
		g.ask(&wire.Request{Label: fmt.Sprintf("%060d", i)})
		g.breathe(r)
	}
	ask.Resources = ask.Resources[:min(len(ask.Resources), 20)]
	g.fresh = 0
	g.breathe(r)
	for range q.Identities {
		g.ask(&ask)
	}
}

// newGlutton makes a worker of a server with a memory limit, and a glutton for each of its
// tenants.
func newGlutton(t *testing.T, limit int64, identities int, keys ...apikey.Key) (*worker, []*glutton) {
	t.Helper()
	rules := workerRules()
	rules.memoryLimit, rules.identities = limit, identities
	var tenants []Tenant
	for _, k := range keys {
		tenants = append(tenants, Tenant{Keys: []apikey.Key{k}, Name: fmt.Sprint(k.ID())})
	}
	clock := newFakeClock()
	// The last is there first, with the limit for itself, so that the reload clamps it.
	w := newWorker(t, clock, rules, tenants[len(tenants)-1:]...)
	if _, err := w.registry.set(clock.Now(), tenants); err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Second)
	var gluttons []*glutton
	for _, k := range keys {
		c := newClient(t, k)
		c.header.Timestamp = clock.Now().Wall
		gluttons = append(gluttons, &glutton{w: w, clock: clock, c: c})
	}
	return w, gluttons
}

// At default quotas, the worst case that a start computes is what a tenant comes to hold
// that uses up everything: within 10 %, by what the Go runtime says.
func TestWorstCaseOfServer(t *testing.T) {
	key := newKey(t, apikey.AuthNone, 7)
	identities := 0 // the default
	if !*full {
		key = newKey(t, apikey.AuthNone, 7, func(q *apikey.Quotas) { q.RateBuckets /= 8 })
		identities = limiter.DefaultIdentities / 8
	}
	before := heapBytes()
	w, gluttons := newGlutton(t, 0, identities, key)
	tenant := w.registry.tenants()[7]
	gluttons[0].fill(&tenant.room)
	held, worst := heapBytes()-before, tenant.room.worst()
	if st := tenant.state.stats(); st.Buckets != int(tenant.room.engine.RateBuckets) || st.Trackers != 1024 || st.Pacers != 8*1024 || st.Identities != tenant.room.engine.Identities ||
		st.Groups != 128*st.Buckets || st.Samples != 32*1024 || len(tenant.state.labels.snapshot()) != 4097 {
		t.Fatalf("not full: %+v", st)
	}
	t.Logf("held %d bytes, worst case %d (%.1f %%)", held, worst, 100*float64(held)/float64(worst))
	if held > worst || held < worst*9/10 {
		t.Errorf("%d bytes are held, the worst case is %d", held, worst)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(gluttons)
}

// Under a limit, tenants that want more than their share are clamped to it, and together
// they hold less than the limit whatever they do.
func TestMemoryLimitHolds(t *testing.T) {
	small := newKey(t, apikey.AuthNone, 1, func(q *apikey.Quotas) { q.RateBuckets, q.LatencyServices, q.MetricsLabels = 256, 16, 16 })
	large := newKey(t, apikey.AuthNone, 2)
	huge := newKey(t, apikey.AuthNone, 3, func(q *apikey.Quotas) { q.RateBuckets, q.LatencyServices, q.LatencyBufferSize = 1<<24, 1<<24, 1<<15 })
	const limit = 64 << 20
	before := heapBytes()
	w, gluttons := newGlutton(t, limit, 10_000, small, large, huge)
	sum := int64(0)
	for id, tenant := range w.registry.tenants() {
		sum += tenant.room.worst()
		if clamped := len(tenant.room.changes(&tenant.wanted)) > 0; clamped != (id != 1) {
			t.Errorf("tenant %d is clamped: %v", id, clamped)
		}
	}
	if sum > limit || sum < limit*9/10 {
		t.Errorf("the worst cases are %d bytes, the limit is %d", sum, limit)
	}
	for i, g := range gluttons {
		tenant := w.registry.tenants()[uint64(i+1)]
		more := tenant.room // and half as much again
		more.engine.RateBuckets += more.engine.RateBuckets / 2
		more.engine.LatencyServices += more.engine.LatencyServices / 2
		more.engine.Identities *= 2
		more.engine.LatencyBufferSize = min(more.engine.LatencyBufferSize, 2048)
		g.fill(&more)
		st := tenant.state.stats()
		if short := int(tenant.room.engine.RateBuckets) - st.Buckets; int64(st.Memory) > tenant.room.worst() || short < 0 || short > 40 {
			t.Errorf("tenant %d holds %d bytes and %d buckets; its worst case is %d with %d", i+1, st.Memory, st.Buckets, tenant.room.worst(), tenant.room.engine.RateBuckets)
		}
	}
	if held := heapBytes() - before; held > limit {
		t.Errorf("%d bytes are held under a limit of %d", held, limit)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(gluttons)
}

// Nobody gets less than another who wants no more, what is left over is nobody's only if
// nobody wants it, and the order of tenants does not matter.
func TestFairShare(t *testing.T) {
	for _, c := range []struct {
		wants        []int64
		limit, share int64
	}{
		{[]int64{10, 20, 30}, 60, 60},
		{[]int64{10, 20, 30}, 59, 29},
		{[]int64{30, 10, 20}, 59, 29},
		{[]int64{10, 20, 30}, 30, 10},
		{[]int64{10, 20, 30}, 29, 9},
		{[]int64{1, 1 << 62, 1 << 62}, 1001, 500},
	} {
		if got := fairShare(c.wants, c.limit); got != c.share {
			t.Errorf("%v under %d: %d, want %d", c.wants, c.limit, got, c.share)
		}
	}
}

// Clamped rooms fit, are as large as fits, and no table is cut for one that takes more.
func TestClamp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		exp := func(n int) uint32 { return 1 << r.IntN(n) }
		wanted := room{
			engine: limiter.Config{
				RateBuckets: exp(25), LatencyServices: exp(25), LatencyBufferSize: exp(16), Pacing: r.IntN(2) == 0,
				Identities: 1 + r.IntN(1<<21), AnswerBytes: 1 << (10 + r.IntN(16)),
			},
			labels: int(exp(13)), keys: 1 + r.IntN(4),
		}
		most := int64(1) << (16 + r.IntN(20))
		got, ok := wanted.clamp(most)
		if !ok {
			if got.worst() <= most {
				t.Errorf("%+v under %d is refused, and fits", wanted, most)
			}
			continue
		}
		if got.worst() > most {
			t.Errorf("%+v under %d: worst case %d", wanted, most, got.worst())
		}
		if again, _ := wanted.clamp(most); again != got {
			t.Error("clamping again gives another room")
		}
		if wanted.worst() <= most && got != wanted {
			t.Errorf("%+v fits and is clamped", wanted)
		}
		for i, p := range got.parts() {
			if want := wanted.parts()[i]; p.value > want.value || p.value < 1 {
				t.Errorf("%s is %d of %d", p.name, p.value, want.value)
			}
		}
		for i, p := range got.parts() {
			want := wanted.parts()[i].value
			if i == partSamples || p.value == want {
				continue
			}
			if more := got.with(i, p.value+1+p.value/8); p.value > 2*p.least && more.worst() < most && got.worst() < most*8/10 {
				t.Errorf("%+v under %d: %s is cut to %d, and more fits", wanted, most, p.name, p.value)
			}
		}
		if got.engine.LatencyBufferSize < wanted.engine.LatencyBufferSize {
			larger := wanted
			larger.engine.LatencyBufferSize = 2 * got.engine.LatencyBufferSize
			if least := larger.least(); least.worst() <= most {
				t.Errorf("%+v under %d: samples are cut to %d without need", wanted, most, got.engine.LatencyBufferSize)
			}
		}
	}
}

// An operator sees what is clamped to what, at the start and after a reload, which keeps
// to the limit as well.
func TestMemoryLimitIsTold(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	path := tempFile(t, tenantsFile(tenantLine("a", a)))
	limit := int64(300 << 20)
	s := start(t, Config{TenantsFile: path, MemoryLimit: limit})
	s.log.await(t, `msg="tenant memory" tenant=a worst_case_bytes=`, 1)
	worst := s.registry.tenants()[1].room.worst()
	if strings.Contains(s.log.String(), "clamps") || worst < limit/2 {
		t.Fatalf("one tenant of %d bytes is clamped:\n%s", worst, s.log)
	}
	writeFile(t, path, tenantsFile(tenantLine("a", a), tenantLine("b", b)))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	half := s.registry.tenants()[1].room
	if w := half.worst(); w > limit/2 || w < limit*9/20 || half != s.registry.tenants()[2].room {
		t.Errorf("of two equal tenants one has %d bytes of %d", w, limit)
	}
	line := fmt.Sprintf(`level=WARN msg="the memory limit clamps a tenant's room" tenant=a worst_case_bytes=%d rate_buckets="%d of 65536" identities="%d of 1048576"`+"\n",
		half.worst(), half.engine.RateBuckets, half.engine.Identities)
	s.log.await(t, line, 1)
	s.log.await(t, "tenant=b worst_case_bytes=", 1)
	want := fmt.Sprintf(`
# HELP weir_memory_limit_bytes What the state of all tenants may come to hold, 0 for any amount.
# TYPE weir_memory_limit_bytes gauge
weir_memory_limit_bytes 3.145728e+08
# HELP weir_tenant_clamped 1 if the memory limit clamps the tenant's room, else 0.
# TYPE weir_tenant_clamped gauge
weir_tenant_clamped{tenant="a"} 1
weir_tenant_clamped{tenant="b"} 1
# HELP weir_tenant_room The bounds of a tenant's state in force, by what they bound.
# TYPE weir_tenant_room gauge
%s`, roomLines(&half, "a", "b"))
	if err := testutil.GatherAndCompare(prometheusOf(t, s.Server), strings.NewReader(want), "weir_memory_limit_bytes", "weir_tenant_clamped", "weir_tenant_room"); err != nil {
		t.Error(err)
	}
	writeFile(t, path, tenantsFile(tenantLine("a", a)))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.registry.tenants()[1].room; got.worst() != worst {
		t.Errorf("alone again, the tenant has %d bytes of %d", got.worst(), worst)
	}
	s.log.await(t, `msg="tenant memory" tenant=a worst_case_bytes=`, 2)
}

// When a reload leaves a tenant less than it holds, its tables keep their size, and the log
// says so.
func TestMoreThanItsRoomIsToldOf(t *testing.T) {
	small := func(q *apikey.Quotas) { q.RateBuckets, q.LatencyServices, q.MetricsLabels = 16, 1, 1 }
	tenants := []Tenant{
		{Keys: []apikey.Key{newKey(t, apikey.AuthNone, 1, small)}, Name: "first"},
		{Keys: []apikey.Key{newKey(t, apikey.AuthNone, 2, small)}, Name: "second"},
	}
	clock := newFakeClock()
	s := start(t, Config{Tenants: tenants[:1], Identities: 16 << 10, AnswerBytes: 16 << 10, MemoryLimit: 2 << 20, Clock: clock})
	w := newWorker(t, clock, workerRules())
	w.registry = s.registry
	c := newClient(t, tenants[0].Keys[0])
	fill := func(n int) {
		c.header.Timestamp = clock.Now().Wall + 1
		for range n {
			c.next()
			w.ask(c.request(checkout(0)))
		}
	}
	const told = "holds more memory than the limit leaves it"
	fill(1000)
	for _, list := range [][]Tenant{tenants, tenants[:1]} {
		if err := s.SetTenants(list); err != nil {
			t.Fatal(err)
		}
	}
	if log := s.log.String(); strings.Contains(log, told) || !strings.Contains(log, "clamps a tenant's room\" tenant=first") {
		t.Fatalf("clamped to more than it holds, the log says\n%s", log)
	}
	fill(15_000)
	if err := s.SetTenants(tenants); err != nil {
		t.Fatal(err)
	}
	first := s.registry.tenants()[1]
	held, worst := first.state.stats().Memory, first.room.worst()
	if int64(held) <= worst {
		t.Fatalf("it holds %d bytes, and %d are left to it", held, worst)
	}
	s.log.await(t, fmt.Sprintf("%s; its tables keep their size until it is removed or the server restarted\" tenant=first bytes=%d worst_case_bytes=%d\n", told, held, worst), 1)
	// What it has expires as ever, and from then on it keeps to the new bounds.
	clock.advance(time.Minute)
	for first.state.reclaim(clock.Now()) {
		continue
	}
	fill(first.room.engine.Identities + 1000)
	if got, room := first.state.stats().Identities, first.room.engine.Identities; got != room {
		t.Errorf("%d identities in a room for %d", got, room)
	}
}

func roomLines(r *room, tenants ...string) string {
	var b bytes.Buffer
	for _, p := range r.parts() {
		for _, name := range tenants {
			fmt.Fprintf(&b, "weir_tenant_room{of=%q,tenant=%q} %d\n", p.name, name, p.value)
		}
	}
	return b.String()
}

// When told to, a server refuses what is over the limit: to start, or to take a file, and
// keeps the tenants that it has.
func TestMemoryLimitStrict(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	both := tenantsFile(tenantLine("a", a), tenantLine("b", b))
	path := tempFile(t, both)
	c := Config{TenantsFile: path, MemoryLimit: 300 << 20, MemoryStrict: true, Listen: []string{"127.0.0.1:0"}}
	const refused = "server: memory limit: the tenants can come to hold "
	if s, err := New(c); err == nil || !strings.HasPrefix(err.Error(), refused) {
		if s != nil {
			s.Close()
		}
		t.Fatalf("the start over the limit: %v", err)
	}
	writeFile(t, path, tenantsFile(tenantLine("a", a)))
	s := start(t, c)
	before := s.registry.tenants()[1]
	writeFile(t, path, both)
	if err := s.Reload(); err == nil || !strings.HasPrefix(err.Error(), refused) {
		t.Errorf("the reload over the limit: %v", err)
	}
	if now := s.registry.tenants(); len(now) != 1 || now[1] != before {
		t.Errorf("the tenants are %v", now)
	}
	if !s.counts.reloadBroken.Load() {
		t.Error("the file counts as good")
	}
}

// Labels keep to a clamped room as well.
func TestClampedLabels(t *testing.T) {
	rules := workerRules()
	rules.memoryLimit = 600_000
	few := func(q *apikey.Quotas) { q.RateBuckets, q.LatencyServices = 16, 1 }
	w := newWorker(t, newFakeClock(), rules, Tenant{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 1, few)}})
	tenant := w.registry.tenants()[1]
	if tenant.room.labels >= tenant.wanted.labels {
		t.Fatalf("%d of %d labels are left", tenant.room.labels, tenant.wanted.labels)
	}
	labels := &tenant.state.labels
	for i := range tenant.wanted.labels {
		labels.count([]byte(fmt.Sprint(i)), limiter.Granted)
	}
	if got := len(labels.snapshot()) - 1; got != tenant.room.labels {
		t.Errorf("%d labels in a room for %d", got, tenant.room.labels)
	}
}

// What fits to the last byte is not over the limit.
func TestMemoryLimitIsTheMost(t *testing.T) {
	r := newRegistry(workerRules())
	plan, err := r.plan([]Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 1)}}, {Keys: []apikey.Key{newKey(t, apikey.AuthNone, 2)}}})
	if err != nil {
		t.Fatal(err)
	}
	most := plan.wanted[0].worst() + plan.wanted[1].worst()
	for limit, fits := range map[int64]bool{most: true, most - 1: false} {
		if _, err := planMemory(plan.wanted, limit, true); (err == nil) != fits {
			t.Errorf("%d bytes under a limit of %d: %v", most, limit, err)
		}
	}
}

// A limit that leaves tenants next to nothing is an error, not a server that cannot serve.
func TestMemoryLimitTooLow(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 1)}}, {Keys: []apikey.Key{newKey(t, apikey.AuthAES, 2)}}}
	for _, c := range []Config{
		{MemoryLimit: 100_000}, {MemoryLimit: -1}, {MemoryStrict: true},
	} {
		c.Tenants, c.Listen = tenants, []string{"127.0.0.1:0"}
		if s, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "server: memory limit: ") {
			if s != nil {
				s.Close()
			}
			t.Errorf("a limit of %d, strict %v: %v", c.MemoryLimit, c.MemoryStrict, err)
		}
	}
}
