package limiter

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/weirhq/weir/wire"
)

// BenchmarkDecide decides new requests of one resource and no guard, in turn over so many live
// buckets. bytes/bucket is what the heap grew by when they were made, identities and answers
// subtracted.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkBuckets(b, n) })
	}
}

func benchmarkBuckets(b *testing.B, n int) {
	views := make([]wire.RequestView, n)
	for i := range views {
		views[i] = requestView(b, wire.Request{Resources: []wire.Resource{numbered(i, 60_000, 10, 1)}})
	}
	c := testConfig()
	c.RateBuckets, c.Skew, c.Identities, c.AnswerBytes = uint32(n), 50, 1<<14, 1<<17
	l := &load{rig: newRig(b, c), request: views}
	before := heapBytes()
	for range n {
		l.next(60_000 * nsPerMs / int64(2*n)) // all within half a window
		if v := l.decide(); v != Granted && v != Rejected {
			b.Fatal(v)
		}
	}
	grown := heapBytes() - before
	e := l.rig.e
	if e.Stats().Buckets != n {
		b.Fatalf("%d buckets are live, want %d", e.Stats().Buckets, n)
	}
	grown -= e.dedup.pool.memory() + e.dedup.index.memory() + e.answers.memory
	b.ReportAllocs()
	for b.Loop() {
		l.next(60_000 * nsPerMs / int64(2*n))
		l.decide()
	}
	b.ReportMetric(float64(grown)/float64(n), "bytes/bucket")
}

func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools of the standard library kept goes with the second
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// BenchmarkBlocks decides requests of several resources and one guard over few buckets.
func BenchmarkBlocks(b *testing.B) {
	for _, blocks := range []int{1, 3, 10, 38} {
		b.Run(strconv.Itoa(blocks), func(b *testing.B) {
			c := testConfig()
			c.RateBuckets, c.Skew = 10_000, 50
			l := newLoad(b, c, 100, blocks)
			l.next(1)
			l.observe()
			b.ReportAllocs()
			for b.Loop() {
				l.next(10_000)
				if v := l.decide(); v != Granted {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkRepeat(b *testing.B) {
	l := newLoad(b, testConfig(), 1, 1)
	l.next(1)
	l.decide()
	b.ReportAllocs()
	for b.Loop() {
		if v := l.decide(); v != RepeatGranted {
			b.Fatal(v)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	l := newLoad(b, testConfig(), 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		l.next(100_000)
		if v := l.observe(); v != Observed {
			b.Fatal(v)
		}
	}
}

// BenchmarkConsume logs single tokens in one bucket: with room for every group, and with so many
// live that groups merge all the time.
func BenchmarkConsume(b *testing.B) {
	for _, live := range []int{1, 100, 200, 10_000} {
		b.Run(fmt.Sprintf("%d live", live), func(b *testing.B) {
			bucket := newEngineBucket(1000, 1<<31)
			gap := int64(1000 * nsPerMs / live)
			now := int64(0)
			for b.Loop() {
				now += gap
				bucket.take(now, 1)
			}
		})
	}
}
