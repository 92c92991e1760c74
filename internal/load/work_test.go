package load

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
)

// Buckets are drawn by Zipf's law, or all alike.
func TestPickerLaw(t *testing.T) {
	const n, draws = 1000, 400_000
	for _, s := range []float64{0, 0.5, 1, 2} {
		p, r := newPicker(n, s), rand.New(rand.NewPCG(1, 2))
		var seen [n]float64
		for range draws {
			seen[p.draw(r)]++
		}
		sum := 0.0
		for i := range n {
			sum += math.Pow(float64(i+1), -s)
		}
		for _, i := range []int{0, 1, 2, 9, 99, 999} {
			want := draws * math.Pow(float64(i+1), -s) / sum
			if off := math.Abs(seen[i] - want); off > 5*math.Sqrt(want)+1 {
				t.Errorf("exponent %v: bucket %d was drawn %v times, want about %.1f", s, i, seen[i], want)
			}
		}
	}
}

// A request's buckets differ as long as there are enough, and what they are called is told apart.
func TestRequestBuckets(t *testing.T) {
	cfg := Config{Work: Work{Buckets: 4, Resources: 4}}
	cfg.Work.fill()
	c := newComposer(&cfg, &tenant{ttl: 1}, newPicker(4, 3))
	r, numbers := rand.New(rand.NewPCG(1, 2)), make([]uint32, 4)
	for range 1000 {
		req := c.request(r, numbers)
		var seen uint
		for i, n := range numbers {
			seen |= 1 << n
			if req.Resources[i].Bucket != bucketID(n) {
				t.Fatalf("%+v", req)
			}
		}
		if seen != 1<<4-1 {
			t.Fatalf("buckets %v", numbers)
		}
	}
	c = newComposer(&cfg, &tenant{ttl: 1}, newPicker(2, 0))
	for range 100 {
		if c.request(r, numbers); max(numbers[0], numbers[1], numbers[2], numbers[3]) > 1 {
			t.Fatalf("buckets %v", numbers)
		}
	}
	ids := map[ident.ID]bool{}
	for n := range uint32(100_000) {
		ids[bucketID(n)] = true
	}
	if len(ids) != 100_000 {
		t.Errorf("%d IDs of 100000 buckets", len(ids))
	}
}

// What a server keeps of a request, and a tracker of samples, is within the key's quotas.
func TestWithinQuotas(t *testing.T) {
	q := apikey.DefaultQuotas()
	k, err := apikey.New(apikey.AuthNone, 1, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Timeout: MaxTimeout, Work: Work{Buckets: 1}}
	n, err := newTenant(&cfg, k)
	if err != nil {
		t.Fatal(err)
	}
	if n.ttl != q.DedupTTL || n.samples != q.LatencyBufferSize {
		t.Errorf("%+v", n)
	}
	q.DedupTTL, q.RateWindow = 60_000, math.MaxUint32
	if k, err = apikey.NewLegacy(apikey.AuthCookie, 1, q, strings.NewReader(strings.Repeat("x", apikey.SecretSize))); err != nil {
		t.Fatal(err)
	}
	if ttl := cfg.dedupTTL(k); ttl != 2000 {
		t.Errorf("%d ms", ttl)
	}
}
