package weir

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

// What is asked while a send hangs leaves together when it goes on: one system call for each socket, and
// every one of them is decided. Whoever hung is not kept by the others.
func TestDeparturesLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		h.clog()
		var all sync.WaitGroup
		ask := func() {
			all.Go(func() {
				if _, err := c.Acquire(context.Background(), oneToken()); err != nil {
					t.Error(err)
				}
			})
		}
		ask()
		synctest.Wait() // it hangs
		h.mu.Lock()
		h.writes = nil
		h.mu.Unlock()
		const crowd = 20
		for range crowd {
			ask()
		}
		synctest.Wait()
		h.mu.Lock()
		if len(h.writes) != 0 {
			t.Errorf("writes while one hangs: %v", h.writes)
		}
		h.mu.Unlock()
		if n := c.Stats().InFlight; n != crowd { // the first is decided, though its send hangs still
			t.Errorf("%d in flight", n)
		}
		h.open()
		all.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		// Two servers of a family each; deliveries may come in between.
		together := 0
		for _, n := range h.writes {
			if n == crowd {
				together++
			}
		}
		if together != 2 {
			t.Errorf("writes of %v datagrams", h.writes)
		}
	})
}

// Each request hears of its own failed sends, whoever made them.
func TestDeparturesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		h.clog()
		h.mu.Lock()
		h.fails = errors.New("no way")
		h.mu.Unlock()
		errs := make(chan error)
		const crowd = 10
		for range crowd {
			go func() {
				_, err := c.Acquire(context.Background(), oneToken())
				errs <- err
			}()
			synctest.Wait()
		}
		h.open()
		for range crowd {
			if err := <-errs; !errors.Is(err, ErrIO) {
				t.Errorf("%v", err)
			}
		}
		h.mu.Lock()
		h.fails = nil
		h.mu.Unlock()
		acquire(t, c)
	})
}

// Close ends those that are queued, and what they were to be sent from is let go of.
func TestCloseEndsDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		h.clog()
		errs := make(chan error)
		const crowd = 30
		for i := range crowd {
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(cancel)
			if i%3 == 2 { // some are gone before
				time.AfterFunc(time.Millisecond, cancel)
			}
			go func() {
				_, err := c.Acquire(ctx, oneToken())
				errs <- err
			}()
			synctest.Wait()
		}
		go func() {
			pass(2 * time.Millisecond)
			c.Close()
		}()
		canceled, decided := 0, 0
		for range crowd {
			switch err := <-errs; {
			case errors.Is(err, context.Canceled):
				canceled++
			case err == nil:
				decided++
			case !errors.Is(err, ErrClosed):
				t.Errorf("%v", err)
			}
		}
		if canceled != crowd/3 || decided != 1 { // the first, whose send hangs at the second server
			t.Errorf("%d were canceled, %d decided", canceled, decided)
		}
		expectClosed(t, c)
		if ports := w.host.Ports(); len(ports) != 0 {
			t.Errorf("sockets are open: %v", ports)
		}
	})
}

// The queue is handed on in order, and nothing is sent twice or forgotten, however they come.
func TestDeparturesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		const crowd, each = 100, 20
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				for range each {
					if _, err := c.Acquire(context.Background(), oneToken()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		s := c.Stats()
		if s.InFlight != 0 {
			t.Errorf("%d in flight", s.InFlight)
		}
		c.departures.mu.Lock()
		defer c.departures.mu.Unlock()
		if c.departures.sending || len(c.departures.queue) != 0 {
			t.Errorf("left over: %+v", len(c.departures.queue))
		}
	})
}

// clogWithOne has one request hang at its send, so that whatever else is sent is left to others.
func clogWithOne(t *testing.T, c *Client, h *clogged) (wait func()) {
	t.Helper()
	h.clog()
	var hangs sync.WaitGroup
	hangs.Go(func() {
		if _, err := c.Acquire(context.Background(), oneToken()); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	synctest.Wait()
	return hangs.Wait
}

// What is reported while a send hangs waits for nothing, leaves when that goes on, and shares datagrams.
func TestReportsShareDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		wait := clogWithOne(t, c, h)
		const crowd = 10
		var want []uint32
		for i := range uint32(crowd) {
			if err := c.Report(inventory.Took(time.Duration(i) * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			want = append(want, i)
		}
		if n := c.Stats().Sent[core.SendReport]; n != 0 {
			t.Errorf("%d datagrams left while another's send hangs", n)
		}
		h.open()
		wait()
		synctest.Wait()
		for _, s := range w.servers {
			if got := reportedMs(s); !slices.Equal(got, want) {
				t.Errorf("server %v was told %v ms, want %v", s.ID, got, want)
			}
		}
		if s := c.Stats(); s.Sent[core.SendReport] != uint64(len(w.servers)) || s.LostReports != 0 {
			t.Errorf("%d datagrams, one for each server would do; %d reports lost", s.Sent[core.SendReport], s.LostReports)
		}
	})
}

// Who reports more than waits for others sends for himself, and so is no faster than the network.
func TestReportsWaitBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		wait := clogWithOne(t, c, h)
		all := make([]Observation, mostReported)
		for i := range all {
			all[i] = inventory.Took(time.Millisecond)
		}
		if err := c.Report(all...); err != nil {
			t.Fatal(err)
		}
		reported := make(chan error, 1)
		go func() { reported <- c.Report(all[0]) }()
		synctest.Wait()
		if len(reported) != 0 {
			t.Error("one more than may wait is reported while a send hangs")
		}
		h.open()
		wait()
		if err := <-reported; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := len(reportedMs(w.servers[0])); got != mostReported+1 {
			t.Errorf("%d observations arrived, want %d", got, mostReported+1)
		}
	})
}

// What was reported before Close leaves, whoever was to send it.
func TestCloseSendsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		acquire(t, c)
		wait := clogWithOne(t, c, h)
		if err := c.Report(inventory.Took(7 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		h.open()
		wait()
		<-closed
		synctest.Wait()
		for _, s := range w.servers {
			if got := reportedMs(s); !slices.Equal(got, []uint32{7}) {
				t.Errorf("server %v was told %v ms, want 7", s.ID, got)
			}
		}
		if n := c.Stats().LostReports; n != 0 {
			t.Errorf("%d reports lost", n)
		}
	})
}

// hookedStack calls a function before it opens a socket, which a client does under its lock.
type hookedStack struct {
	udp.Stack
	before func()
}

func (s *hookedStack) Listen(a netip.AddrPort, o udp.Options) (udp.Conn, error) {
	s.before()
	return s.Stack.Listen(a, o)
}

// A report that found nobody sending has left when Report returns, even if somebody would send while it is made: what is
// queued behind them is not sent when Close comes first.
func TestReportIsNotLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := &hookedStack{Stack: w.host}
		w.stack = h
		c := w.client()
		joined := false
		h.before = func() { joined = c.departures.join(c.getOutbox()) } // somebody who is about to send
		if err := c.Report(inventory.Took(7 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		c.Close() // before that one has sent
		if !joined {
			c.departures.leave()
		}
		synctest.Wait()
		if got := reportedMs(w.servers[0]); !slices.Equal(got, []uint32{7}) {
			t.Errorf("the server was told %v ms, want 7", got)
		}
	})
}

// brokenReader fails once it is broken.
type brokenReader struct {
	io.Reader
	broken atomic.Bool
}

func (r *brokenReader) Read(p []byte) (int, error) {
	if r.broken.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return r.Reader.Read(p)
}

// Each report that Close cannot send any more is counted.
func TestCloseCountsLostReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		source := &brokenReader{Reader: rand.Reader}
		c, err := newClient(Config{Key: w.key, Servers: w.members()}, platform{stack: h, clock: w.clock, entropy: source})
		if err != nil {
			t.Fatal(err)
		}
		wait := clogWithOne(t, c, h)
		for range 3 {
			if err := c.Report(inventory.Took(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		source.broken.Store(true)
		c.Close()
		wait()
		if n := c.Stats().LostReports; n != 3 {
			t.Errorf("%d reports lost, want 3", n)
		}
	})
}

// Close ends what is queued also when the goroutine that sends it hangs, and when there are reports to send still.
func TestCloseEndsAQueueThatHangs(t *testing.T) {
	for _, report := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, h := newClogged(t)
			c := w.client()
			acquire(t, c)
			wait := clogWithOne(t, c, h)
			queued := make(chan error, 1)
			go func() {
				_, err := c.Acquire(context.Background(), oneToken())
				queued <- err
			}()
			synctest.Wait()
			h.mu.Lock() // what hangs goes on, and what is queued hangs
			close(h.gate)
			h.gate = make(chan struct{})
			h.mu.Unlock()
			wait()
			synctest.Wait()
			if report {
				if err := c.Report(inventory.Took(time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			closed := make(chan struct{})
			go func() {
				c.Close()
				close(closed)
			}()
			select {
			case <-closed:
			case <-time.After(time.Second):
				t.Fatal("Close waits for a send that hangs")
			}
			if took := time.Since(start); took > closePatience {
				t.Errorf("it took %v", took)
			}
			if err := <-queued; err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrIO) {
				t.Error(err)
			}
			expectClosed(t, c)
			if ports := w.host.Ports(); len(ports) != 0 {
				t.Errorf("sockets are open: %v", ports)
			}
		})
	}
}
