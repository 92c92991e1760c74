package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// asked is one datagram that a scripted responder got, opened with the world's key.
type asked struct {
	datagram []byte
	header   wire.Header
	request  wire.RequestView
	from     netip.AddrPort
	key      apikey.Key // to answer with
	id       ident.ServerID
}

// answer is what a server of the key and the ID answers.
func (a *asked) answer(w *world) []byte {
	return a.answerTo(w, &a.request)
}

func (a *asked) answerTo(w *world, v *wire.RequestView) []byte {
	c, err := wire.NewCredential(a.key)
	if err != nil {
		w.t.Error(err)
	}
	s, err := wire.NewSealer(rand.Reader)
	if err != nil {
		w.t.Error(err)
	}
	n, g := v.Resources(), v.Guards()
	h := wire.Header{KeyID: uint64(a.id), UniqueID: a.header.UniqueID, Timestamp: uint64(now().UnixMilli()), Steering: 1}
	b, err := c.AppendResponse(nil, s, &h, v, &wire.Answer{Latencies: make([]uint32, g), Rates: make([]uint32, n), Deficits: make([]uint16, n)})
	if err != nil {
		w.t.Error(err)
	}
	return b
}

// respond runs a scripted server of ID 1000.
func (w *world) respond(addr string, script func(*asked) []byte) discovery.Server {
	w.t.Helper()
	at := netip.MustParseAddrPort(addr)
	conn, err := w.at(addr).Listen(at, udp.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	credential, err := wire.NewCredential(w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		ds := []udp.Datagram{{Buf: make([]byte, wire.MaxDatagram)}}
		for {
			if _, err := conn.Read(ds); err != nil {
				return
			}
			a := &asked{datagram: slices.Clone(ds[0].Payload()), from: ds[0].Peer, key: w.key, id: 1000}
			var e wire.Envelope
			if err := wire.ParseEnvelope(a.datagram, &e); err != nil {
				w.t.Error(err)
				continue
			}
			pdu, err := credential.Open(&e, new(wire.Scratch))
			if err == nil {
				err = wire.ParseRequest(pdu, &a.request)
			}
			if err != nil {
				w.t.Error(err)
				continue
			}
			a.header = e.Header
			if b := script(a); b != nil {
				_, _ = conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: ds[0].Peer}})
			}
		}
	})
	w.t.Cleanup(func() {
		conn.Close()
		running.Wait()
	})
	return discovery.Server{ID: 1000, Addrs: []netip.AddrPort{at}}
}

// zone is a resolver whose records a test writes.
type zone struct {
	srv   map[string][]discovery.SRV
	hosts map[string][]netip.Addr
	err   error // instead of everything
	half  error // beside addresses
	asked int   // for SRV records
}

const serviceName = "_ratelimitly._udp.c-7.rl.test"

// named makes a zone with these servers in it, under the key's domain.
func named(servers ...discovery.Server) *zone {
	z := &zone{srv: map[string][]discovery.SRV{}, hosts: map[string][]netip.Addr{}}
	for _, s := range servers {
		host := s.ID.Label() + ".rl.test"
		z.srv[serviceName] = append(z.srv[serviceName], discovery.SRV{Target: host + ".", Port: s.Addrs[0].Port()})
		for _, a := range s.Addrs {
			z.hosts[host] = append(z.hosts[host], a.Addr())
		}
	}
	return z
}

func (z *zone) String() string { return "192.0.2.53:53" }

func (z *zone) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	z.asked++
	if errors.Is(z.err, errSilent) {
		<-ctx.Done()
	}
	if z.err != nil {
		return nil, 0, z.err
	}
	records, ok := z.srv[name]
	switch {
	case !ok:
		return nil, 0, discovery.ErrNoName
	case len(records) == 0:
		return nil, 0, discovery.ErrNotFound
	}
	return records, 5 * time.Second, nil
}

func (z *zone) LookupAddrs(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
	addrs := z.hosts[host]
	switch {
	case len(addrs) == 0:
		return nil, 0, discovery.ErrNotFound
	case z.half != nil:
		return addrs, 5 * time.Second, &discovery.PartialError{Network: "ip6", Err: z.half}
	}
	return addrs, 5 * time.Second, nil
}

var errSilent = errors.New("no answer over udp")

// lookedUp is the configuration of a client that finds a zone's servers.
func (w *world) lookedUp(z *zone) Config {
	cfg := w.config()
	cfg.Client.Zone, cfg.Client.Resolver = "rl.test", z
	return cfg
}
