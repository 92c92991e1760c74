package server

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
)

// modelSocket is a socket in virtual time: what comes is queued while there is room, and read in order.
type modelSocket struct {
	udp.Conn
	size   int // bytes, as the system counts them
	queue  []int64
	sizes  []int // that were set
	broken bool
	silent bool // about what is queued
}

const modelCharge = 832 // bytes of a short datagram

func (m *modelSocket) Queued() int {
	if m.silent {
		return 0
	}
	return len(m.queue) * modelCharge / 2
}

func (m *modelSocket) ReadBuffer() int { return m.size / 2 }

func (m *modelSocket) SetReadBuffer(bytes int) error {
	if m.broken {
		return errors.ErrUnsupported
	}
	m.size = 2 * bytes
	m.sizes = append(m.sizes, bytes)
	return nil
}

func (m *modelSocket) arrive(at int64) {
	if len(m.queue)*modelCharge < m.size {
		m.queue = append(m.queue, at)
	}
}

// fullBuffer is the receive buffer of a worker of two by default.
const fullBuffer = 2500 * 1152

// play has datagrams come at a rate a second, to a worker that decides one in some time, for a while, and returns
// which share of what it could decide was answered within 20 ms, and what waited longest of that.
func play(q *standing, m *modelSocket, from time.Duration, rate float64, each, span time.Duration) (share float64, longest time.Duration) {
	const begun = 1_700_000_000_000 // Unix ms
	random := rand.New(rand.NewPCG(1, 2))
	now, next, end := int64(from), float64(from), int64(from+span)
	stamp := func(ns int64) int64 { return begun*int64(time.Millisecond) + ns }
	inTime := 0
	for now < end {
		for ; next <= float64(now); next += random.ExpFloat64() / rate * float64(time.Second) {
			m.arrive(int64(next))
		}
		if len(m.queue) == 0 {
			now = int64(next) + 1
			continue
		}
		n := min(batchSize, len(m.queue))
		batch := m.queue[:n]
		m.queue = m.queue[n:]
		q.read(limiter.Time{Mono: now, Wall: uint64(stamp(now) / int64(time.Millisecond))}, &udp.Datagram{Received: stamp(batch[0])})
		now += int64(n) * int64(each)
		for _, at := range batch {
			longest = max(longest, time.Duration(now-at))
			if now-at <= int64(20*time.Millisecond) {
				inTime++
			}
		}
	}
	return float64(inTime) / (float64(span) / float64(each)), longest
}

func newStanding(m *modelSocket) *standing {
	m.size = 2 * fullBuffer
	q := new(standing)
	q.init(m, defaultReceiveBuffer.Wait)
	return q
}

// A worker that is asked twice what it can decide goes on deciding as much, and in time. Without a bound of what
// stands in its socket, nothing is.
func TestStandingQueue(t *testing.T) {
	const each = 20 * time.Microsecond // 50 000 a second
	for _, times := range []float64{1.2, 2, 5, 50} {
		var m modelSocket
		q := newStanding(&m)
		rate := times * float64(time.Second/each)
		play(q, &m, 0, rate, each, time.Second) // finds its size
		share, longest := play(q, &m, time.Second, rate, each, 2*time.Second)
		if share < 0.95 || longest > 20*time.Millisecond || !q.limited.Load() {
			t.Errorf("%v times what it can: %.2f of it in time, the longest took %v; limited: %v, sizes %v", times, share, longest, q.limited.Load(), m.sizes)
		}
		unbounded := modelSocket{size: 2 * fullBuffer}
		play(new(standing), &unbounded, 0, rate, each, time.Second)
		if share, _ := play(new(standing), &unbounded, time.Second, rate, each, 2*time.Second); share > 0.01 {
			t.Errorf("%v times what it can, unbounded: %.2f in time; the test tells nothing", times, share)
		}
	}
}

// When the load falls the socket has all of its buffer again.
func TestStandingQueueEnds(t *testing.T) {
	const each = 20 * time.Microsecond
	var m modelSocket
	q := newStanding(&m)
	play(q, &m, 0, 100_000, each, time.Second)
	if !q.limited.Load() {
		t.Fatal("not limited at twice of what it can")
	}
	play(q, &m, time.Second, 30_000, each, time.Second)
	if q.limited.Load() || m.ReadBuffer() != fullBuffer {
		t.Errorf("limited: %v, with %d bytes of %d", q.limited.Load(), m.ReadBuffer(), fullBuffer)
	}
}

// When nothing comes any more, the socket has its buffer again; while something does, it is the worker's.
func TestStandingQueueRests(t *testing.T) {
	const each = 20 * time.Microsecond
	var m modelSocket
	q := newStanding(&m)
	play(q, &m, 0, 100_000, each, time.Second)
	small := m.ReadBuffer()
	q.rest(limiter.Time{Mono: int64(1100 * time.Millisecond)})
	if !q.limited.Load() || m.ReadBuffer() != small {
		t.Errorf("limited: %v, with %d bytes, a moment after the last datagram", q.limited.Load(), m.ReadBuffer())
	}
	q.rest(limiter.Time{Mono: int64(2 * time.Second)})
	if q.limited.Load() || m.ReadBuffer() != fullBuffer {
		t.Errorf("limited: %v, with %d bytes of %d, a second after it", q.limited.Load(), m.ReadBuffer(), fullBuffer)
	}
}

// A server looks after the workers' buffers itself.
func TestServerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelSocket{size: 2 * fullBuffer}
		clock := newFakeClock()
		s := &Server{settings: &settings{Config: Config{Clock: clock}}}
		w := &worker{}
		w.standing.init(&m, defaultReceiveBuffer.Wait)
		play(&w.standing, &m, 0, 100_000, 20*time.Microsecond, time.Second)
		s.listeners = []*listener{{workers: []*worker{w}}}
		ctx, end := context.WithCancel(t.Context())
		var rests sync.WaitGroup
		rests.Go(func() { s.rest(ctx) })
		clock.advance(time.Minute)
		time.Sleep(2 * restEvery)
		synctest.Wait()
		if w.standing.limited.Load() {
			t.Error("limited, and nothing comes")
		}
		end()
		rests.Wait()
	})
}

// A burst that is allowed to wait does, however long the worker had no processor.
func TestBurstsDoNotStand(t *testing.T) {
	var m modelSocket
	q := newStanding(&m)
	at := time.Duration(0)
	for range 20 {
		play(q, &m, at, 10_000, 20*time.Microsecond, 80*time.Millisecond)
		at += 80 * time.Millisecond
		for i := range 1500 { // while the worker slept, for 30 ms
			m.arrive(int64(at) + int64(i)*20_000)
		}
		at += 30 * time.Millisecond
	}
	if len(m.sizes) != 0 {
		t.Errorf("the buffer was changed to %v", m.sizes)
	}
}

// Nor does one that comes when nothing else has come for long, although every datagram of it has waited.
func TestBurstsAloneDoNotStand(t *testing.T) {
	var m modelSocket
	q := newStanding(&m)
	at := time.Duration(0)
	for range 20 {
		at += 200 * time.Millisecond
		for i := range 1500 { // while the worker slept, for 30 ms
			m.arrive(int64(at) + int64(i)*20_000)
		}
		at += 30 * time.Millisecond
		play(q, &m, at, 1, 20*time.Microsecond, 31*time.Millisecond)
	}
	if len(m.sizes) != 0 {
		t.Errorf("the buffer was changed to %v", m.sizes)
	}
}

func TestStandingBounds(t *testing.T) {
	var m modelSocket
	q := newStanding(&m)
	play(q, &m, 0, 1e6, 10*time.Millisecond, 5*time.Second) // 100 a second, of a million
	if least := udp.ReadBufferFor(leastHeld); m.ReadBuffer() != least {
		t.Errorf("a worker that is very slow has %d bytes, want %d", m.ReadBuffer(), least)
	}

	m = modelSocket{broken: true}
	q = newStanding(&m)
	play(q, &m, 0, 100_000, 20*time.Microsecond, time.Second)
	if q.limited.Load() {
		t.Error("limited, though the system refuses to")
	}

	m = modelSocket{silent: true}
	q = newStanding(&m)
	play(q, &m, 0, 100_000, 20*time.Microsecond, time.Second)
	if len(m.sizes) != 0 {
		t.Errorf("the buffer was changed to %v, though nobody knows what stands", m.sizes)
	}

	m = modelSocket{}
	q = newStanding(&m)
	for i := range int64(1000) { // nobody tells how long they waited
		q.read(limiter.Time{Mono: i * 1e6, Wall: 1e12}, &udp.Datagram{})
	}
	if len(m.sizes) != 0 {
		t.Errorf("the buffer was changed to %v, though nothing is known to have waited", m.sizes)
	}

	var none standing
	none.init(nil, time.Second) // such as a network of a test
	none.read(limiter.Time{Mono: math.MaxInt64}, &udp.Datagram{Received: 1})
}
