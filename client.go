package weir

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// A Client asks for admission and reports latencies. Make it with [New] or
// [Dial], keep one for the life of the program, and end it with [Client.Close].
// All methods are safe for concurrent use.
//
// It is the state machine of package core plus I/O: at most two sockets (one
// IPv4, one IPv6, each opened when a server needs it; more for moments, while
// steering replaces one), a goroutine to read each, one for the timer, one for what
// many callers ask at once, and one for each DNS lookup.
type Client struct {
	platform
	resolver     discovery.Resolver
	logger       *slog.Logger // nil: no log
	layout       wire.Layout
	socketBuffer int
	bursts       bool

	mu        sync.Mutex // no system call is made under it, but to open a socket
	core      *core.Core
	closed    bool
	calls     map[core.RequestID]*call // undecided
	armed     time.Duration            // when the timer fires
	timer     *time.Timer
	links     [families]link
	sockets   map[core.SocketID]*socket // open
	opened    core.SocketID             // the last one's ID
	lookups   map[core.LookupID]context.CancelFunc
	discovery discoveryState
	journal   journal
	counts    counts

	outboxes, spares, reports sync.Pool // of *outbox, *call, *report

	arrivals   arrivals
	departures departures
	readErrors atomic.Uint64 // passing ones
	ctx        context.Context
	cancel     context.CancelFunc // ends everything that the client started
	wg         sync.WaitGroup     // everything that the client started
}

// platform is what a client stands on; tests put something else under it.
type platform struct {
	stack   udp.Stack
	clock   func() core.Time
	entropy io.Reader
}

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// New returns a client and does not wait: discovery begins at once, and requests
// made before it has ended wait for it. Errors are of class [*ConfigError], or
// say why the machine's resolver or source of randomness cannot be used.
func New(cfg Config) (*Client, error) {
	return newClient(cfg, platform{
		stack: udp.Host(),
		clock: systemClock(),
		// Identities are drawn under the client's lock: not with a system
		// call each.
		entropy: bufio.NewReaderSize(rand.Reader, 2048),
	})
}

// Dial returns a client that knows servers. It waits while discovery goes on
// asking, until ctx ends; with a ctx without a deadline, until the first attempt
// has failed. The error is then one of [New], or matches [ErrNoServers] and says
// what discovery failed with.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.awaitServers(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(cfg Config, p platform) (*Client, error) {
	coreConfig, servers, err := cfg.core()
	if err != nil {
		return nil, err
	}
	coreConfig.Entropy = p.entropy
	state, err := core.New(coreConfig)
	if err != nil {
		return nil, translate(err)
	}
	c := &Client{
		platform:     p,
		resolver:     cfg.Resolver,
		logger:       cfg.Logger,
		layout:       cfg.Layout,
		socketBuffer: cmp.Or(cfg.SocketBuffer, 1<<20),
		bursts:       !cfg.NoBursts,
		core:         state,
		calls:        make(map[core.RequestID]*call),
		armed:        never,
		timer:        time.NewTimer(never),
		sockets:      make(map[core.SocketID]*socket),
		lookups:      make(map[core.LookupID]context.CancelFunc),
		discovery:    newDiscoveryState(),
		departures:   departures{handOver: make(chan struct{}, 1), atWork: make(chan struct{}, 1)},
	}
	now := c.clock()
	if coreConfig.Domain == "" {
		if err := c.core.SetMembership(now, servers); err != nil {
			return nil, translate(err)
		}
	} else if c.resolver == nil {
		if c.resolver, err = discovery.System(); err != nil {
			return nil, fmt.Errorf("weir: %w", err)
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.wg.Go(c.drive)
	c.wg.Go(c.sendQueued)
	ob := c.getOutbox()
	c.mu.Lock()
	c.core.HandleTimer(now) // begins discovery
	c.settle(now, ob)
	c.mu.Unlock()
	c.flush(ob)
	return c, nil
}

// Close ends the client: calls that wait return [ErrClosed], as does every later
// one, sockets are closed, and lookups are canceled. It returns when everything
// that the client started has ended; it is idempotent, and the error is nil.
func (c *Client) Close() error {
	stuck := time.AfterFunc(closePatience, c.hangUp)
	defer stuck.Stop()
	ob := c.getOutbox()
	now := c.clock()
	c.departures.atWork <- struct{}{} // whose reports have left then
	c.mu.Lock()
	if !c.closed {
		if obs, reports := c.departures.takeReports(); reports > 0 && c.core.Report(now, obs) != nil {
			c.counts.lostReports += uint64(reports)
		}
		c.settle(now, ob)
		c.closed = true
		c.core.Close(now)
		c.settle(now, ob)
		for id, k := range c.calls {
			delete(c.calls, id)
			k.fail(ErrClosed)
			ob.wake = append(ob.wake, k)
		}
		c.discovery.ended()
		for _, s := range c.sockets {
			ob.hangUp = append(ob.hangUp, s)
		}
		c.cancel()
	}
	c.mu.Unlock()
	c.flush(ob)
	<-c.departures.atWork
	c.wg.Wait()
	return nil
}

// closePatience is how long Close lets go on what is being sent, and reports that are left to send.
const closePatience = 50 * time.Millisecond

// hangUp closes the sockets, which ends whatever is being sent.
func (c *Client) hangUp() {
	c.mu.Lock()
	sockets := slices.Collect(maps.Values(c.sockets))
	c.mu.Unlock()
	for _, s := range sockets {
		s.conn.Close()
	}
}

// settle is called with the lock held after every call into the core: it reads
// out what the core wants done, notes in ob what is to be done without the lock,
// and arms the timer. The caller then unlocks and calls flush.
func (c *Client) settle(now core.Time, ob *outbox) {
	for {
		d := ob.slot()
		ob.send.Payload = d.Buf[:0]
		if !c.core.PollSend(now, &ob.send) {
			break
		}
		d.Buf, d.N, d.Peer = ob.send.Payload, len(ob.send.Payload), ob.send.To
		c.post(now, ob)
	}
	for c.core.PollEvent(&ob.event) {
		c.handle(&ob.event, ob)
	}
	if c.arrivals.any() {
		return // who has arrived fires what is due, and arms the timer after that
	}
	if at, ok := c.core.Deadline(); ok && at < c.armed {
		c.armed = at
		c.timer.Reset(at - c.clock().Mono) // now was read before the lock was waited for
	}
}

// handle takes one event.
func (c *Client) handle(ev *core.Event, ob *outbox) {
	switch ev.Kind {
	case core.EventCompleted:
		if k := c.calls[ev.Completion.Request]; k != nil {
			delete(c.calls, ev.Completion.Request)
			k.complete(&ev.Completion)
			ob.wake = append(ob.wake, k)
		}
	case core.EventLookup:
		c.startLookup(ev.Lookup)
	case core.EventCancelLookup:
		if cancel := c.lookups[ev.Lookup.ID]; cancel != nil {
			cancel()
		}
	case core.EventSteer:
		c.startSteering(ev.Socket)
	case core.EventMembershipChanged:
		c.discovery.succeeded()
		c.logMembership(ev)
	case core.EventDiscoveryFailed:
		c.discovery.failed(ev.Err)
		c.logFailure(ev)
	case core.EventFailingFast:
		c.logFailingFast()
	case core.EventRecovered:
		c.logRecovered()
	}
}

// drive is the timer's goroutine.
func (c *Client) drive() {
	defer c.timer.Stop()
	a := newAhead()
	for {
		select {
		case <-c.timer.C:
		case <-c.ctx.Done():
			return
		}
		c.readAhead(a)
		ob := c.getOutbox()
		c.mu.Lock()
		now := c.clock()
		c.armed = never
		c.runTimers(now)
		c.settle(now, ob)
		c.mu.Unlock()
		c.flush(ob)
	}
}

// runTimers fires the core's deadlines that are due, unless a reader has
// datagrams to hand in first: it will fire them.
func (c *Client) runTimers(now core.Time) {
	if at, ok := c.core.Deadline(); !ok || at > now.Mono {
		c.arrivals.notDue()
		return
	}
	if !c.arrivals.first() {
		c.core.HandleTimer(now)
	}
}
