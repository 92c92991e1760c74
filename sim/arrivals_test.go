package sim

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// submits returns when each client made its requests.
func (t tape) submits() map[int][]time.Duration {
	at := map[int][]time.Duration{}
	for _, r := range t.of(RecordSubmit) {
		at[r.Client] = append(at[r.Client], r.At)
	}
	return at
}

func arrivals(a Arrivals, clients int) *Scenario {
	return small(func(s *Scenario) {
		s.Clients[0].Arrivals, s.Clients[0].Count = a, clients
	})
}

// TestArrivals: each kind, with its beginning and end.
func TestArrivals(t *testing.T) {
	for name, c := range map[string]struct {
		a    Arrivals
		want []time.Duration
	}{
		"constant": {Arrivals{Kind: ArriveConstant, Every: ms(300), Start: ms(100)}, []time.Duration{ms(100), ms(400), ms(700)}},
		"stopped":  {Arrivals{Kind: ArriveConstant, Every: ms(300), Start: ms(100), Stop: ms(700)}, []time.Duration{ms(100), ms(400)}},
		"burst":    {Arrivals{Kind: ArriveBurst, Every: ms(600), Size: 2}, []time.Duration{0, 0, ms(600), ms(600)}},
		"trace":    {Arrivals{Kind: ArriveTrace, Start: ms(10), Times: []time.Duration{0, ms(5), ms(5), ms(990)}}, []time.Duration{ms(10), ms(15), ms(15)}},
		"closed":   {Arrivals{Kind: ArriveClosed, Size: 1, Start: ms(1), Think: Constant(ms(398))}, []time.Duration{ms(399), ms(799)}},
	} {
		if got := play(t, arrivals(c.a, 1), 1).submits()[0]; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
	turns := play(t, arrivals(Arrivals{Kind: ArriveConstant, Every: ms(400)}, 4), 1).submits()
	for i := range 4 {
		if turns[i][0] != ms(100*i) || turns[i][1] != ms(400+100*i) {
			t.Errorf("client %d of 4 begins at %v", i, turns[i])
		}
	}
}

// TestPoisson: the gaps are exponential, and differ between clients.
func TestPoisson(t *testing.T) {
	s := arrivals(Arrivals{Kind: ArrivePoisson, Every: ms(1)}, 2)
	s.Length = 10 * time.Second
	at := play(t, s, 1).submits()
	if slices.Equal(at[0], at[1]) {
		t.Error("both clients do the same")
	}
	for i := range 2 {
		if n := len(at[i]); math.Abs(float64(n)-10_000) > 400 {
			t.Errorf("%d requests in 10 s, not 10,000", n)
		}
		long := 0
		for n := range at[i][1:] {
			if at[i][n+1]-at[i][n] > ms(3) {
				long++
			}
		}
		if !near(long, len(at[i]), 0.0498) {
			t.Errorf("%d of %d gaps are over three means, not e^-3", long, len(at[i]))
		}
	}
}

// TestClosedLoop: a caller asks again when it was answered, its work was done and it has thought.
func TestClosedLoop(t *testing.T) {
	s := arrivals(Arrivals{Kind: ArriveClosed, Size: 3, Think: Constant(ms(10))}, 1)
	s.Services = []Service{{Name: "db", Parallel: -1, Time: Constant(ms(20))}}
	s.Clients[0].Mix[0].Work = "db"
	// 10 ms to think, 2 ms to ask, 20 ms of work: 10, 42, 74 … ms, up to 970.
	if got := play(t, s, 1).submits()[0]; len(got) != 3*31 || got[3] != ms(42) || got[len(got)-1] != ms(970) {
		t.Errorf("%d requests, the fourth at %v, the last at %v", len(got), got[3], got[len(got)-1])
	}
	s.Buckets[0].Limit = 0 // all are rejected: no work
	if got := play(t, s, 1).submits()[0]; len(got) != 3*83 || got[3] != ms(22) {
		t.Errorf("%d requests, the fourth at %v", len(got), got[3])
	}
}

// TestNoTimeAtAll: callers that are answered in no time and do not think wait for a millisecond.
func TestNoTimeAtAll(t *testing.T) {
	s := arrivals(Arrivals{Kind: ArriveClosed, Size: 1}, 1)
	s.Links = nil
	if got := play(t, s, 1).submits()[0]; len(got) != 1000 {
		t.Errorf("%d requests in a second", len(got))
	}
	s.Clients[0].MaxInFlight = 1
	s.Clients[0].Arrivals.Size = 2
	s.Links = []Link{{From: "*", To: "*", Delay: Constant(us(1250))}}
	refused := play(t, s, 1).count(RecordSubmit, func(r *Record) bool { return errors.Is(r.Err, core.ErrTooManyInFlight) })
	if refused < 900 || refused > 1000 {
		t.Errorf("%d were refused; somebody tries each millisecond", refused)
	}
}

// TestMix: choices come by their weights, buckets by Zipf's law, and each family's bucket is drawn
// once for a request.
func TestMix(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 6000)
		s.Servers = s.Servers[:1]
		s.Buckets = append(s.Buckets, Bucket{Name: "z", Limit: 1000, Window: time.Second, Count: 3, Zipf: 100})
		s.Clients[0].Mix = []Choice{{Weight: 1, Take: []Take{{"b", 1}}}, {Weight: 3, Take: []Take{{"z", 2}, {"z", 3}}}}
	})
	got := play(t, s, 1)
	if n := got.count(RecordSubmit, func(r *Record) bool { return r.Choice == 1 }); !near(n, 6000, 0.75) {
		t.Errorf("%d of 6000 are of the choice that weighs 3 of 4", n)
	}
	drawn := map[ident.ID]int{}
	total := 0
	for _, r := range got.of(RecordSend) {
		blocks := resources(t, r.Payload)
		if len(blocks) == 1 {
			continue
		}
		if blocks[0].Bucket != blocks[1].Bucket || blocks[0].Tokens != 2 || blocks[1].Tokens != 3 {
			t.Fatalf("blocks %+v", blocks)
		}
		drawn[blocks[0].Bucket]++
		total++
	}
	for n, share := range []float64{6. / 11, 3. / 11, 2. / 11} {
		if got := drawn[ident.Bucket(s.Buckets[1].BucketName(n), 1000, 1000)]; !near(got, total, share) {
			t.Errorf("bucket %d is drawn %d times of %d, not %v", n, got, total, share)
		}
	}
	flat := newFamily(0, &Bucket{Name: "f", Count: 4})
	for i := range uint64(4) {
		if flat.draw(i<<62) != int(i) || flat.draw(i<<62+1<<62-1) != int(i) {
			t.Errorf("quarter %d draws another bucket", i)
		}
	}
}

// TestZipf compares weights with their law.
func TestZipf(t *testing.T) {
	for _, z := range []uint32{50, 100, 137, 1000} {
		last := uint64(0)
		for i, until := range zipf(1000, z) {
			want := math.Pow(float64(i+1), -float64(z)/100) * (1 << 40)
			if got := float64(until - last); math.Abs(got-want) > 1+want*1e-9 {
				t.Fatalf("with %d the weight of %d is %v, not %v", z, i+1, got, want)
			}
			last = until
		}
	}
}

// resources reads a request's datagram.
func resources(t testing.TB, datagram []byte) (blocks []wire.Resource) {
	t.Helper()
	var e wire.Envelope
	if err := wire.ParseEnvelope(datagram, &e); err != nil {
		t.Fatal(err)
	}
	var v wire.RequestView
	if err := wire.ParseRequest(e.Sealed(), &v); err != nil {
		t.Fatal(err)
	}
	for i := range v.Resources() {
		blocks = append(blocks, v.Resource(i))
	}
	return blocks
}
