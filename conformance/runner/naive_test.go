package runner

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// naive is a client written for this test alone: a goroutine for each request, one
// lock, no core. It runs in virtual time over an in-memory network, and can be broken
// in a word.
type naive struct {
	stack udp.Stack
	fault string
	in    *io.PipeReader
	tell  *io.PipeWriter
	hear  *io.PipeReader
	out   *io.PipeWriter
	ended chan struct{}
	all   sync.WaitGroup

	mu         sync.Mutex
	key        apikey.Key
	credential *wire.Credential
	sealer     *wire.Sealer
	line       *policy.Timeline
	layout     wire.Layout
	domain     string
	nameserver netip.AddrPort
	members    []member
	conn       udp.Conn // the one that sends
	conns      []udp.Conn
	advised    bool // to change the port
	flights    map[wire.UniqueID]*flight
	lastUID    wire.UniqueID
}

// member is a server that the naive client knows.
type member struct {
	id    ident.ServerID
	addrs []netip.AddrPort
}

// flight is a request of the naive client.
type flight struct {
	asked     wire.Request
	header    wire.Header
	datagram  []byte
	members   []member
	began     time.Time
	sent      time.Time // last, but for completion delivery
	heard     map[ident.ServerID]bool
	candidate *result
	changed   chan struct{}
	over      bool
}

// result is an answer that counts.
type result struct {
	id      ident.ServerID
	granted bool
	reply   conformance.Reply
}

// newNaive starts a naive client with a fault, "" for none.
func newNaive(stack udp.Stack, fault string) *naive {
	c := &naive{stack: stack, fault: fault, ended: make(chan struct{}), flights: map[wire.UniqueID]*flight{}}
	c.in, c.tell = io.Pipe()
	c.hear, c.out = io.Pipe()
	go func() {
		defer close(c.ended)
		c.serve()
		c.mu.Lock()
		for _, conn := range c.conns {
			conn.Close()
		}
		c.mu.Unlock()
		c.all.Wait()
	}()
	return c
}

// Write and Read are the runner's ends of the streams.
func (c *naive) Write(b []byte) (int, error) { return c.tell.Write(b) }
func (c *naive) Read(b []byte) (int, error)  { return c.hear.Read(b) }

// End ends the client.
func (c *naive) End() {
	c.tell.Close()
	c.hear.Close()
	<-c.ended
}

func (c *naive) say(r conformance.Reply) { _ = conformance.WriteLine(c.out, r) }

func (c *naive) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer c.out.Close()
	c.say(conformance.Reply{Event: "hello", Name: "naive", Auth: []string{"aes", "cookie", "none"}, Layouts: []int{1, 2}, Has: []string{conformance.NeedDeliveryDelay, conformance.NeedParseKey}})
	lines := bufio.NewScanner(c.in)
	for lines.Scan() {
		command, err := conformance.ParseCommand(lines.Bytes())
		if err != nil {
			c.say(conformance.Reply{Event: "error", Text: err.Error()})
			return
		}
		switch command.Cmd {
		case "parse_key":
			c.say(c.parseKey(&command))
		case "configure":
			c.say(c.configure(ctx, &command))
		case "submit":
			c.all.Go(func() { c.submit(ctx, &command) })
		case "report":
			c.report(&command)
			c.say(conformance.Reply{Event: "reported", ID: command.ID})
		case "quit":
			return
		}
	}
}

func (c *naive) readKey(command *conformance.Command) (apikey.Key, error) {
	if command.Legacy || c.fault == "takes-legacy-keys" {
		return apikey.ParseAny(command.Key)
	}
	return apikey.Parse(command.Key)
}

func (c *naive) parseKey(command *conformance.Command) conformance.Reply {
	key, err := c.readKey(command)
	if err != nil {
		return conformance.Reply{Event: "refused", Field: "key", Text: err.Error()}
	}
	f := conformance.KeyFieldsOf(key)
	if c.fault == "swaps-quotas" {
		q := f.Quotas
		q["rate_buckets"], q["latency_services"] = q["latency_services"], q["rate_buckets"]
	}
	return conformance.Reply{Event: "parsed", Key: f}
}

func (c *naive) configure(ctx context.Context, command *conformance.Command) conformance.Reply {
	refuse := func(field string, err error) conformance.Reply {
		return conformance.Reply{Event: "refused", Field: field, Text: err.Error()}
	}
	key, err := c.readKey(command)
	if err != nil {
		return refuse("key", err)
	}
	numbers := *command.Policy
	if c.fault == "ignores-preference" {
		numbers.Preference, numbers.FinalPreference = "fixed:0", 0
	}
	p, err := numbers.Policy()
	if err != nil && c.fault == "takes-any-policy" {
		p, err = policy.Default(), nil
	}
	if err != nil {
		var field *policy.FieldError
		if errors.As(err, &field) {
			return refuse(field.Field, err)
		}
		return refuse("policy", err)
	}
	if c.line, err = p.Compile(); err != nil {
		return refuse("policy", err)
	}
	if c.line.HorizonMs() > key.Quotas().DedupTTL && c.fault != "ignores-quota" {
		return refuse("horizon", errors.New("over the quota"))
	}
	c.key = key
	c.credential, _ = wire.NewCredential(key)
	c.sealer, _ = wire.NewSealer(rand.Reader)
	c.layout, c.domain = wire.Layout(command.Layout), command.Domain
	if c.fault == "wrong-layout" {
		c.layout = 3 - c.layout
	}
	c.nameserver = netip.MustParseAddrPort(command.Nameserver)
	if err := c.bind(udp.Options{}); err != nil {
		return conformance.Reply{Event: "error", Text: err.Error()}
	}
	c.refresh(ctx)
	return conformance.Reply{Event: "ready"}
}

// bind opens the first socket, or the next.
func (c *naive) bind(o udp.Options) error {
	listen := func() (udp.Conn, error) { return udp.ListenNext(c.stack, c.conn.LocalAddr(), o) }
	if c.conn == nil || c.fault == "any-port" {
		listen = func() (udp.Conn, error) { return c.stack.Listen(netip.MustParseAddrPort("127.0.0.1:0"), o) }
	}
	conn, err := listen()
	if err != nil {
		return err
	}
	if c.conn != nil && c.fault == "closes-the-old-port" {
		c.conn.Close()
	}
	c.conn = conn
	c.conns = append(c.conns, conn)
	c.all.Go(func() { c.read(conn) })
	return nil
}

func (c *naive) read(conn udp.Conn) {
	ds := []udp.Datagram{{Buf: make([]byte, wire.BufferSize)}}
	for {
		n, err := conn.Read(ds)
		if udp.Closed(err) {
			return
		}
		if n == 1 {
			c.mu.Lock()
			c.receive(slices.Clone(ds[0].Payload()))
			c.mu.Unlock()
		}
	}
}

// refresh discovers the members, and goes on when the TTL is over.
func (c *naive) refresh(ctx context.Context) {
	members, ttl, err := c.discover()
	if err == nil && len(members) > 0 || c.fault == "forgets-members" {
		c.mu.Lock()
		c.members = members
		c.mu.Unlock()
	}
	if err != nil {
		ttl = time.Second
	}
	if c.fault == "ignores-ttl" {
		return
	}
	c.all.Go(func() {
		select {
		case <-time.After(max(ttl, time.Second)):
			c.refresh(ctx)
		case <-ctx.Done():
		}
	})
}

func (c *naive) discover() (members []member, ttl time.Duration, err error) {
	records, err := c.ask("_ratelimitly._udp."+c.domain+".", dns.TypeSRV)
	ttl = 300 * time.Second
	for _, rr := range records {
		srv, ok := rr.(*dns.SRV)
		if !ok {
			continue
		}
		ttl = min(ttl, time.Duration(srv.Hdr.Ttl)*time.Second)
		id, ok := ident.ParseTarget(srv.Target)
		if !ok && c.fault == "takes-any-target" {
			id, ok = 1<<40, true
		}
		if !ok || srv.Port == 0 {
			continue
		}
		m := member{id: id}
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			addrs, err := c.ask(srv.Target, kind)
			if err != nil {
				continue
			}
			for _, rr := range addrs {
				var a netip.Addr
				switch rr := rr.(type) {
				case *dns.A:
					a, _ = netip.AddrFromSlice(rr.A.To4())
				case *dns.AAAA:
					a, _ = netip.AddrFromSlice(rr.AAAA)
				}
				if a.IsLoopback() && a.Is4() {
					m.addrs = append(m.addrs, netip.AddrPortFrom(a, srv.Port))
				}
			}
		}
		if c.fault == "one-address" && len(m.addrs) > 1 {
			m.addrs = m.addrs[:1]
		}
		known := slices.ContainsFunc(members, func(o member) bool { return o.id == m.id })
		if len(m.addrs) > 0 && (!known || c.fault == "takes-records-twice") {
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(fmt.Sprintf("%020d", a.id), fmt.Sprintf("%020d", b.id)) })
	return members, ttl, err
}

// ask asks the DNS server one question.
func (c *naive) ask(name string, kind uint16) ([]dns.RR, error) {
	conn, err := c.stack.Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	b, err := q.Pack()
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: c.nameserver}}); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	ds := []udp.Datagram{{Buf: make([]byte, 4096)}}
	if _, err := conn.Read(ds); err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	if err := m.Unpack(ds[0].Payload()); err != nil {
		return nil, err
	}
	if m.Rcode != dns.RcodeSuccess {
		return nil, errors.New(dns.RcodeToString[m.Rcode])
	}
	return m.Answer, nil
}
