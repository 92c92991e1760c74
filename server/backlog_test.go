package server

import (
	"encoding/binary"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// scriptConn is a socket that has the datagrams of one batch at a time, and keeps a log of what is
// done with it.
type scriptConn struct {
	udp.Conn
	tb      testing.TB
	batches [][][]byte // what each look at the socket finds
	waited  int        // looks that would have waited
	broken  bool       // looks that would not have waited fail
	looked  func()
	log     []int64 // request numbers of answers in their order; -n for a look that found n
}

func (c *scriptConn) Read(ds []udp.Datagram) (int, error) {
	if len(c.batches) == 0 {
		return 0, net.ErrClosed
	}
	c.waited++
	return c.take(ds)
}

func (c *scriptConn) ReadReady(ds []udp.Datagram) (int, error) {
	if c.broken {
		return 0, os.ErrPermission
	}
	return c.take(ds)
}

func (c *scriptConn) take(ds []udp.Datagram) (int, error) {
	if c.looked != nil {
		c.looked()
	}
	if len(c.batches) == 0 || len(ds) == 0 {
		return 0, nil
	}
	n := min(len(ds), len(c.batches[0]))
	for i, b := range c.batches[0][:n] {
		ds[i].N, ds[i].Peer = copy(ds[i].Buf, b), peer
	}
	if c.batches[0] = c.batches[0][n:]; len(c.batches[0]) == 0 {
		c.batches = c.batches[1:]
	}
	c.log = append(c.log, -int64(n))
	return n, nil
}

func (c *scriptConn) Write(ds []udp.Datagram) (int, error) {
	for _, d := range ds {
		var e wire.Envelope
		if err := wire.ParseEnvelope(d.Payload(), &e); err != nil {
			c.tb.Fatal(err)
		}
		c.log = append(c.log, int64(binary.LittleEndian.Uint32(e.Header.UniqueID[:])))
	}
	return len(ds), nil
}

// queueing is a worker behind a scriptConn, and its client.
type queueing struct {
	*worker
	conn  *scriptConn
	clock *fakeClock
	c     *client
}

func newQueueing(t *testing.T) *queueing {
	key := newKey(t, apikey.AuthAES, 7)
	q := &queueing{clock: newFakeClock(), conn: &scriptConn{tb: t}, c: newClient(t, key)}
	q.worker = newWorker(t, q.clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	q.worker.conn = q.conn
	q.c.header.Timestamp = q.clock.Now().Wall
	return q
}

// short and long make requests with a number.
func (q *queueing) short(n uint32) []byte { return q.make(n, checkout(0)) }

func (q *queueing) long(n uint32) []byte {
	r := checkout(0)
	for range 30 {
		r.Resources = append(r.Resources, r.Resources[0])
	}
	return q.make(n, r)
}

func (q *queueing) make(n uint32, r *wire.Request) []byte {
	q.c.header.UniqueID = wire.UniqueID{}
	binary.LittleEndian.PutUint32(q.c.header.UniqueID[:], n)
	return q.c.request(r)
}

// longs makes long ones numbered from some number on.
func (q *queueing) longs(from, n uint32) (batch [][]byte) {
	for i := range n {
		batch = append(batch, q.long(from+i))
	}
	return batch
}

// A burst of long datagrams keeps back no short one: that goes first which came with them, and that
// which comes while they wait goes after four more of them. Both kinds keep their order.
func TestShortDatagramsGoFirst(t *testing.T) {
	q := newQueueing(t)
	q.conn.batches = [][][]byte{append(q.longs(1, 9), q.short(101), q.short(102)), {q.short(103)}, append(q.longs(10, 1), q.short(104))}
	q.run(t.Context())
	want := []int64{-11, 101, 102, 1, 2, 3, 4, -1, 103, 5, 6, 7, 8, -2, 104, 9, 10}
	if !slices.Equal(q.conn.log, want) || q.conn.waited != 1 {
		t.Errorf("waited %d times: %v, want %v", q.conn.waited, q.conn.log, want)
	}
	if count, _, _ := q.counts.latency.cumulative(); count != 14 {
		t.Errorf("%d answers measured, want 14", count)
	}
	if n := q.received.Load(); n != 14 {
		t.Errorf("%d datagrams counted, want 14", n)
	}
}

// A socket that fails while long ones wait does not keep them.
func TestLongDatagramsOfBrokenSocket(t *testing.T) {
	q := newQueueing(t)
	q.conn.batches, q.conn.broken = [][][]byte{q.longs(1, 9)}, true
	q.run(t.Context())
	if want := []int64{-9, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(q.conn.log, want) || q.counts.readErrors.Load() != 2 {
		t.Errorf("%d errors: %v, want 2 and %v", q.counts.readErrors.Load(), q.conn.log, want)
	}
}

// However many short ones keep coming, four long ones are decided with each batch of them.
func TestLongDatagramsAreNotStarved(t *testing.T) {
	q := newQueueing(t)
	q.conn.batches = [][][]byte{q.longs(1, 20)}
	number := uint32(100)
	for range 5 {
		var batch [][]byte
		for range batchSize {
			number++
			batch = append(batch, q.short(number))
		}
		q.conn.batches = append(q.conn.batches, batch)
	}
	q.run(t.Context())
	done := slices.Index(q.conn.log, 20)
	if looks := len(slices.DeleteFunc(q.conn.log[:max(0, done)], func(n int64) bool { return n >= 0 })); done < 0 || looks != 5 {
		t.Errorf("the last of 20 long ones is answered after %d looks, want 5", looks)
	}
}

// A flood of long ones fills the backlog and no more: what has no place stays in the socket. All are
// answered, once and in their order.
func TestBacklogIsBounded(t *testing.T) {
	q := newQueueing(t)
	const flood = 3 * backlogSize
	q.conn.batches = [][][]byte{q.longs(1, flood)}
	q.run(t.Context())
	read, next := 0, int64(1)
	for _, n := range q.conn.log {
		switch {
		case n < 0:
			read -= int(n)
		case n != next:
			t.Fatalf("answer %d comes where %d should", n, next)
		default:
			next++
		}
		if waiting := read - int(next-1); waiting > backlogSize {
			t.Fatalf("%d wait", waiting)
		}
	}
	if next != flood+1 {
		t.Errorf("%d are answered, want %d", next-1, flood)
	}
}

// A long one that comes alone is answered before the worker looks for others.
func TestLoneLongDatagram(t *testing.T) {
	q := newQueueing(t)
	q.conn.batches = [][][]byte{q.longs(1, 1), q.longs(2, 1)}
	q.run(t.Context())
	if want := []int64{-1, 1, -1, 2}; !slices.Equal(q.conn.log, want) || q.conn.waited != 2 {
		t.Errorf("waited %d times: %v, want %v", q.conn.waited, q.conn.log, want)
	}
}

// One that waited longer than its dedup TTL, in the socket and the backlog together, is late.
func TestLateInTheBacklog(t *testing.T) {
	q := newQueueing(t)
	received := q.clock.Now()
	q.conn.batches = [][][]byte{q.longs(1, 9)}
	q.conn.looked = func() { q.clock.advance(40 * time.Millisecond) } // two looks are longer than 60 ms
	stamped := &stampedConn{q.conn, int64(received.Wall) * int64(time.Millisecond)}
	q.worker.conn = stamped
	q.run(t.Context())
	if want := []int64{-9, 1, 2, 3, 4}; !slices.Equal(q.conn.log, want) || drops(q.worker) != "map[late:5]" {
		t.Errorf("%v, want %v; dropped %s", q.conn.log, want, drops(q.worker))
	}
}

// stampedConn tells when all datagrams were received.
type stampedConn struct {
	*scriptConn
	at int64 // Unix ns
}

func (c *stampedConn) Read(ds []udp.Datagram) (int, error) {
	n, err := c.scriptConn.Read(ds)
	for i := range ds[:n] {
		ds[i].Received = c.at
	}
	return n, err
}

// A worker that lets a flood gather does not do so while datagrams that it has taken wait for it, nor while there are more.
func TestNoNapBeforeLongDatagrams(t *testing.T) {
	q := newQueueing(t)
	const napped = 1 << 20
	q.moderation.nap = func(time.Duration) { q.conn.log = append(q.conn.log, napped) }
	flood := make([][]byte, batchSize)
	for i := range flood {
		flood[i] = []byte("junk")
	}
	q.conn.batches = [][][]byte{flood, append(flood[5:batchSize:batchSize], q.longs(1, 5)...), {q.short(6), q.short(7)}, flood}
	q.run(t.Context())
	if want := []int64{-32, -32, 1, 2, 3, 4, -2, 6, 7, 5, napped, -32}; !slices.Equal(q.conn.log, want) {
		t.Errorf("%v, want %v", q.conn.log, want)
	}
}
