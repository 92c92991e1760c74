package limiter

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/wire"
)

var growth = flag.Int("growth", 100_000, "live buckets of TestGrowth; 10000000 takes a minute and more than 1 GB")

// crowd asks for buckets by their number, out of one request whose bytes it changes.
type crowd struct {
	rig  *rig
	pdu  []byte
	at   int // of the bucket's ID
	view wire.RequestView
	h    wire.Header
	n    uint64

	plenty bool // ask for buckets that are never empty
}

func newCrowd(t testing.TB, buckets int) *crowd {
	c := testConfig()
	c.RateBuckets, c.Skew, c.Identities, c.AnswerBytes = uint32(buckets), 50, 1<<17, 1<<17
	mark := numbered(0, 60_000, 10, 1)
	copy(mark.Bucket[:], "where the ID is.")
	b, err := credential.AppendRequest(nil, nil, &wire.Header{}, &wire.Request{Layout: wire.Layout2, DedupTTL: 60, Resources: []wire.Resource{mark}})
	if err != nil {
		t.Fatal(err)
	}
	k := &crowd{rig: newRig(t, c), pdu: opened(t, b)}
	if k.at = bytes.Index(k.pdu, mark.Bucket[:]); k.at < 0 {
		t.Fatal("the request holds no ID")
	}
	return k
}

// ask asks for one token of a bucket, so long after the last, and returns how long the engine took.
func (k *crowd) ask(t testing.TB, bucket uint64, ns int64) time.Duration {
	binary.LittleEndian.PutUint64(k.pdu[k.at:], bucket)
	if k.plenty {
		copy(k.pdu[k.at+20:], []byte{0, 0, 0, 1}) // 2^24
	}
	if err := wire.ParseRequest(k.pdu, &k.view); err != nil {
		t.Fatal(err)
	}
	k.n++
	k.rig.pass(ns)
	binary.LittleEndian.PutUint64(k.h.UniqueID[:], k.n)
	k.h.Timestamp = k.rig.now.Wall
	start := time.Now()
	v := k.rig.e.Decide(k.rig.now, &k.h, &k.view, &k.rig.ans)
	took := time.Since(start)
	if v != Granted {
		t.Fatalf("bucket %d: %v", bucket, v)
	}
	return took
}

// TestGrowth fills an engine with buckets of 10 tokens a minute of which each has given one, lets them all
// expire, and fills it once more. It holds what memory a bucket takes; what decisions take it prints, for
// a machine at rest to be judged by. All is done three times: a decision that takes long each time does so by
// itself, and one that does only once was held up by the machine.
func TestGrowth(t *testing.T) {
	n := *growth
	var filled, again []uint32 // ns that each decision took at least
	for turn := range 3 {
		k := newCrowd(t, n)
		before := heapBytes()
		fill := func(what string, least []uint32) []uint32 {
			t.Helper()
			if least == nil {
				least = slices.Repeat([]uint32{1<<32 - 1}, n)
				before += 4 * n
			}
			for i := range n {
				least[i] = min(least[i], uint32(k.ask(t, uint64(i), 30_000*nsPerMs/int64(n))))
			}
			e := k.rig.e
			grown := heapBytes() - before - e.dedup.pool.memory() - e.dedup.index.memory() - e.answers.memory
			t.Logf("%s: %d buckets, %.1f bytes each, %s resident", what, n, float64(grown)/float64(n), resident(t))
			const most = 110 // some room to grow included
			if live := e.Stats().Buckets; live != n || grown > most*n+1<<20 {
				t.Errorf("%s: %d buckets are live and take %d bytes", what, live, grown)
			}
			return least
		}
		filled = fill("filled", filled)
		k.rig.pass(61_000 * nsPerMs)
		again = fill("filled again after all had expired", again)
		if turn == 2 {
			t.Logf("the longest decisions took %v while it grew and %v while it took back what was expired", time.Duration(slices.Max(filled)), time.Duration(slices.Max(again)))
			k.plenty = true
			k.rig.pass(61_000 * nsPerMs)
			few := k.cost(t, 1000)
			fill("and again, of such as have plenty", again)
			t.Logf("a decision among 1000 takes %v, among %d %v", few, n, k.cost(t, n))
		}
	}
}

// cost returns what a decision takes about one of so many buckets, drawn at random.
func (k *crowd) cost(t testing.TB, among int) (least time.Duration) {
	const asks = 200_000
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 { // the least of them is what nobody else disturbed
		start := time.Now()
		for range asks {
			k.ask(t, random.Uint64N(uint64(among)), 1000)
		}
		if took := time.Since(start) / asks; least == 0 || took < least {
			least = took
		}
	}
	return least
}

// resident is the process's memory, as the system tells it.
func resident(t testing.TB) string {
	runtime.GC()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return strconv.Itoa(kb>>10) + " MB"
		}
	}
	return "unknown"
}
