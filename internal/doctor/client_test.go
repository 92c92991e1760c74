package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// coreClient is a client of the last step on a world's network: the real core, one
// request at a time.
type coreClient struct {
	w     *world
	core  *core.Core
	conns map[bool]udp.Conn // by whether for IPv4
	in    chan []byte
	done  chan struct{}
}

func (c *coreClient) now() core.Time {
	return core.Time{Mono: now().Sub(today), Wall: now().Add(c.w.off).UnixMilli()}
}

// dial makes a client, and looks its servers up.
func (w *world) dial(ctx context.Context, cfg weir.Config) (Asker, error) {
	state, err := core.New(core.Config{
		Key: cfg.Key, Policy: cfg.Policy, Layout: cfg.Layout, Entropy: rand.Reader, Domain: domain(&cfg),
	})
	if err != nil {
		return nil, err
	}
	c := &coreClient{w: w, core: state, conns: map[bool]udp.Conn{}, in: make(chan []byte), done: make(chan struct{})}
	if err := c.join(ctx, &cfg); err != nil {
		return nil, err
	}
	for _, a := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		conn, err := w.host.Listen(netip.AddrPortFrom(a, 0), udp.Options{})
		if err != nil {
			return nil, err
		}
		c.conns[a.Is4()] = conn
		go c.read(conn)
	}
	return c, nil
}

// join makes the membership known.
func (c *coreClient) join(ctx context.Context, cfg *weir.Config) error {
	if len(cfg.Servers) > 0 {
		var servers []core.Server
		for _, s := range cfg.Servers {
			servers = append(servers, core.Server{ID: s.ID, Endpoints: s.Addrs})
		}
		return c.core.SetMembership(c.now(), servers)
	}
	c.core.HandleTimer(c.now())
	var ev core.Event
	for c.core.PollEvent(&ev) {
		switch {
		case ev.Kind == core.EventDiscoveryFailed && len(c.core.Membership()) == 0:
			return fmt.Errorf("%w: %w", weir.ErrNoServers, ev.Err)
		case ev.Kind == core.EventLookup && ev.Lookup.Kind == core.LookupSRV:
			records, ttl, err := cfg.Resolver.LookupSRV(ctx, ev.Lookup.Name)
			a := core.SRVAnswer{TTL: ttl, Err: err}
			for _, r := range records {
				a.Records = append(a.Records, core.SRV{Target: r.Target, Port: r.Port})
			}
			c.core.HandleSRV(c.now(), ev.Lookup.ID, a)
		case ev.Kind == core.EventLookup:
			addrs, ttl, err := cfg.Resolver.LookupAddrs(ctx, ev.Lookup.Name)
			if len(addrs) > 0 {
				err = nil
			}
			c.core.HandleAddrs(c.now(), ev.Lookup.ID, core.AddrAnswer{Addrs: addrs, TTL: ttl, Err: err})
		}
	}
	return nil
}

func (c *coreClient) read(conn udp.Conn) {
	ds := []udp.Datagram{{Buf: make([]byte, wire.MaxDatagram)}}
	for {
		if _, err := conn.Read(ds); err != nil {
			return
		}
		select {
		case c.in <- append([]byte(nil), ds[0].Payload()...):
		case <-c.done:
			return
		}
	}
}

// Ask implements Asker.
func (c *coreClient) Ask(ctx context.Context) (Answer, error) {
	id, err := c.core.Submit(c.now(), &core.Request{Resources: []wire.Resource{{Bucket: ident.Bucket(bucketName, 1, 1), Window: 1, Rate: 1}}})
	if err != nil {
		return Answer{}, err
	}
	for {
		var out core.Send
		for c.core.PollSend(c.now(), &out) {
			d := []udp.Datagram{{Buf: out.Payload, N: len(out.Payload), Peer: out.To}}
			if _, err := c.conns[out.To.Addr().Is4()].Write(d); err != nil {
				c.core.HandleSendFailure(c.now(), out.Ref, err)
			}
		}
		var ev core.Event
		for c.core.PollEvent(&ev) {
			if ev.Kind == core.EventCompleted && ev.Completion.Request == id {
				return c.answer(&ev.Completion)
			}
		}
		at, _ := c.core.Deadline()
		timer := time.NewTimer(at - c.now().Mono)
		select {
		case b := <-c.in:
			c.core.HandleDatagram(c.now(), 1, b)
		case <-timer.C:
			c.core.HandleTimer(c.now())
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
		timer.Stop()
	}
}

func (c *coreClient) answer(done *core.Completion) (Answer, error) {
	switch done.Outcome {
	case core.Granted:
		return Answer{Server: done.Server, Elapsed: done.Elapsed, Round: done.Round}, nil
	case core.TimedOut:
		return Answer{}, &weir.TimeoutError{Elapsed: done.Elapsed, Seen: done.Seen}
	case core.SendFailed:
		return Answer{}, fmt.Errorf("%w: %w", weir.ErrIO, done.Err)
	}
	return Answer{}, errors.New("rejected")
}

// Close implements Asker.
func (c *coreClient) Close() {
	for _, conn := range c.conns {
		conn.Close()
	}
	close(c.done)
}
