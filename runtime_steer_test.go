package weir

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
)

// watchPorts samples how many sockets a host has open until the test ends the
// context, and returns the most.
func watchPorts(ctx context.Context, h *udp.NetworkHost) <-chan int {
	most := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			n = max(n, len(h.Ports()))
			pass(time.Millisecond)
		}
		most <- n
	}()
	return most
}

// One of two servers, the oldest or the other, advises another port in each
// answer, on a network that loses a lot. Nothing is lost for that, and a replaced
// socket is closed as soon as nobody waits for it.
func TestOneServerAlwaysAdvises(t *testing.T) {
	for adviser := range 2 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			b := newBadNetwork(w, 0.05)
			w.servers[adviser].Do(func(e *exchange) { e.Header.Steering = 0 })
			c := w.client()
			const seconds = 5
			ctx, cancel := context.WithTimeout(context.Background(), seconds*time.Second)
			defer cancel()
			most := watchPorts(ctx, w.host)
			var callers sync.WaitGroup
			var mu sync.Mutex
			decided := 0
			for range 16 {
				callers.Go(func() {
					for ctx.Err() == nil {
						_, err := c.Acquire(context.Background(), oneToken())
						mu.Lock()
						if err == nil {
							decided++
						} else if !errors.Is(err, ErrTimeout) {
							t.Error(err)
						}
						mu.Unlock()
					}
				})
			}
			callers.Wait()
			pass(time.Second)
			if decided != len(b.timely) {
				t.Errorf("%d answered in time, %d decisions", len(b.timely), decided)
			}
			s := c.Stats()
			if s.Rebinds < seconds-1 || s.Rebinds > seconds+1 || s.SteeringFailures != 0 {
				t.Errorf("%d rebinds in %d s, %d failures", s.Rebinds, seconds, s.SteeringFailures)
			}
			if n := <-most; n != 2 || len(w.host.Ports()) != 1 {
				t.Errorf("up to %d sockets, %d at the end", n, len(w.host.Ports()))
			}
		})
	}
}

// Requests that wait for seconds keep the sockets that they left from, and no
// more than a second's one each.
func TestOpenSocketsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.key = patientKey(t, apikey.AuthAES)
		w.addServer(1)
		w.servers[0].Do(func(e *exchange) { e.Header.Steering, e.Silent = 0, e.Request.Resource(0).Tokens == 2 })
		const horizon = 5 // seconds
		c := w.client(func(cfg *Config) {
			cfg.Policy = policy.Default()
			cfg.Policy.Unit, cfg.Policy.Replays, cfg.Policy.FinalReceive = horizon*time.Second, 0, 0
		})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		most := watchPorts(ctx, w.host)
		var waiting sync.WaitGroup
		for ctx.Err() == nil {
			waiting.Go(func() { // is never answered
				if _, err := c.Acquire(context.Background(), Request{Resources: []Resource{checkout.Take(2)}}); !errors.Is(err, ErrTimeout) {
					t.Error(err)
				}
			})
			acquire(t, c)
			pass(50 * time.Millisecond)
		}
		// Each second's socket is held for the horizon; one is current.
		if n := <-most; n < horizon || n > horizon+2 {
			t.Errorf("up to %d sockets", n)
		}
		waiting.Wait()
		synctest.Wait()
		if n := len(w.host.Ports()); n != 1 || c.Stats().Sockets != 1 {
			t.Errorf("%d sockets at the end", n)
		}
	})
}

// Whoever gives up lets go of the socket, too.
func TestCanceledRequestLetsGoOfItsSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		w.silence(0)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			_, err := c.Acquire(ctx, oneToken())
			ended <- err
		}()
		pass(time.Millisecond)
		w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
		acquire(t, c)
		synctest.Wait()
		if ports := w.host.Ports(); len(ports) != 2 {
			t.Fatalf("open: %v; the old socket has a request under way", ports)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if ports := w.host.Ports(); !slices.Equal(ports, []uint16{udp.FirstSteeringPort}) {
			t.Errorf("open: %v", ports)
		}
	})
}

// A replay leaves from another socket than the first send, if that was replaced in
// between, and its answer is waited for there, though that one is replaced, too.
func TestReplayKeepsItsSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.key = patientKey(t, apikey.AuthAES)
		w.addServer(1)
		slow := Request{Resources: []Resource{checkout.Take(2)}}
		w.servers[0].Do(func(e *exchange) {
			if e.Request.Resource(0).Tokens == 1 {
				e.Header.Steering = 0
				return
			}
			e.Silent, e.Delay = e.Repeat != 1, 1500*time.Millisecond
		})
		c := w.client(func(cfg *Config) { cfg.Policy = patient() })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d, err := c.Acquire(context.Background(), slow) // replayed after 2 s
			if err != nil || d.Round() != 1 || d.Elapsed() != 3500*time.Millisecond {
				t.Errorf("%v, %v", d, err)
			}
		}()
		for range 2 { // before the replay, and after it
			pass(1200 * time.Millisecond)
			acquire(t, c)
		}
		synctest.Wait()
		if ports := w.host.Ports(); len(ports) != 3 {
			t.Errorf("open: %v; want those of the first send and of the replay, and the current one", ports)
		}
		<-ended
		synctest.Wait()
		if ports := w.host.Ports(); len(ports) != 1 {
			t.Errorf("open: %v", ports)
		}
	})
}

// Over real sockets: a server that always advises is followed from port to port,
// at most once a second, without a request lost, and the old sockets are closed.
func TestSteeringForReal(t *testing.T) {
	key := patientKey(t, apikey.AuthAES)
	s := scripted.Start(t, udp.Host(), "127.0.0.1:0", 1000, key)
	s.Do(func(e *exchange) { e.Header.Steering = 0 })
	begun := time.Now()
	c, err := New(Config{Key: key, Policy: patient(), Servers: memberList(s)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if d, err := c.Acquire(context.Background(), oneToken()); err != nil || !d.Granted() {
					t.Errorf("%v, %v", d, err)
					return
				}
			}
		})
	}
	const rebinds = 3
	for c.Stats().Rebinds < rebinds {
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(begun)
	close(done)
	callers.Wait()
	acquire(t, c) // out of the last socket: the callers may have left before it came
	stats := c.Stats()
	if stats.Rebinds > uint64(took/time.Second)+2 {
		t.Errorf("%d rebinds in %v", stats.Rebinds, took)
	}
	for c.Stats().Sockets > 1 { // the last one's reader is about to end
		time.Sleep(time.Millisecond)
	}
	// The first port is the system's choice.
	ports := s.Log().Peers()
	if len(ports) < rebinds+1 {
		t.Fatalf("sent from %v", ports)
	}
	seen := map[uint16]bool{}
	for _, from := range ports[1:] {
		if from.Port() < udp.FirstSteeringPort || seen[from.Port()] {
			t.Errorf("steered through %v", ports)
		}
		seen[from.Port()] = true
	}
}
