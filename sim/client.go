package sim

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
)

// client is one r-client: the core and the host around it.
type client struct {
	index    int
	group    int
	name     string
	core     *core.Core
	skew     time.Duration
	addr     netip.Addr
	armed    time.Duration // when the timer fires
	sockets  []*socket     // open ones; the last is current
	opened   core.SocketID
	steer    core.SocketID // to be replaced, 0: none
	ports    stream
	pending  map[core.RequestID]*pending
	owed     map[core.RequestID]owed
	members  []core.Server
	sight    time.Duration // how much later than others it sees DNS change
	lookups  map[core.LookupID]lookup
	asked    uint64 // requests
	reported uint64 // datagrams of reports, and of probes
	thinking stream
	gaps     rand.PCG // between arrivals, in turn
	choices  rand.PCG // what is asked, in turn
	next     int      // of a recorded trace
}

// pending is a request that is undecided, or whose work is being done.
type pending struct {
	number  uint64 // in the run
	ordinal uint64 // of the client
	at      time.Duration
	choice  int
	caller  int
	sockets []*socket // it was sent from
}

// owed is a request that was decided and whose completion delivery is delayed.
type owed struct{ number, ordinal uint64 }

const (
	zone  = "sim.example"
	never = time.Duration(math.MaxInt64)
)

func (w *World) addClients() error {
	names := w.s.ClientNames()
	w.clients = make([]client, len(names))
	at := 0
	for g := range w.s.Clients {
		for n := range w.s.Clients[g].count() {
			c := &w.clients[at]
			*c = client{
				index: at, group: g, name: names[at], skew: w.s.Clients[g].Skew, armed: never,
				addr:    netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)}),
				pending: make(map[core.RequestID]*pending), owed: make(map[core.RequestID]owed),
				lookups: make(map[core.LookupID]lookup),
			}
			at++
			if err := w.openClient(c); err != nil {
				return err
			}
			w.planArrivals(c, n)
		}
	}
	return nil
}

func (w *World) openClient(c *client) (err error) {
	named := func(what string) stream { return newStream(w.seed, what+" of "+c.name) }
	c.ports, c.thinking = named("ports"), named("thinking")
	c.gaps, c.choices = named("arrivals").inTurn(), named("choices").inTurn()
	dns := named("dns")
	c.sight = w.s.DNS.Propagation.At(dns.word(1))
	c.core, err = core.New(w.s.coreConfig(w.key, c.group, newEntropy(w.seed, "identities of "+c.name)))
	if err != nil {
		return fmt.Errorf("sim: client %s: %w", c.name, err)
	}
	// It has run for a while at time 0 and knows its servers; when it looks them up next is chance.
	began := -time.Second - time.Duration(share(dns.word(2), uint64(w.s.longAgo(c.skew))))
	c.armed = began
	w.queue.plan(event{at: began, kind: evTimer, who: int32(c.index)})
	return nil
}

// longAgo returns how much earlier than 1 s before time 0 a client may have begun: a TTL, but not so much
// that the youngest server has an ID that is far ahead of the client's clock, which would leave it out until
// the next lookup.
func (s *Scenario) longAgo(skew time.Duration) time.Duration {
	const ahead = 59 * time.Second // below what a core takes for a slip of a clock
	ago := s.DNS.ttl()
	for i := range s.Servers {
		if room := s.Servers[i].Age + ahead + min(0, skew); room > 0 { // else it is ahead at time 0, too
			ago = min(ago, room)
		}
	}
	return ago
}

// coreConfig returns how the core of a client of a group is made.
func (s *Scenario) coreConfig(key apikey.Key, group int, entropy io.Reader) core.Config {
	return core.Config{
		Key: key, Policy: s.policy(), Layout: s.layout(), Entropy: entropy, MaxInFlight: s.Clients[group].MaxInFlight,
		Domain: zone, FailFast: s.FailFast, Refresh: s.Refresh,
	}
}

// fire runs a client's timer, if this is still when it is set for.
func (w *World) fire(c *client) {
	if c.armed != w.now {
		return
	}
	c.armed = never
	if at, ok := c.core.Deadline(); ok && at <= w.now {
		c.core.HandleTimer(w.coreTime(c))
	}
	w.settle(c)
}

// settle does what the core wants done, after every call into it, and arms the timer.
func (w *World) settle(c *client) {
	now := w.coreTime(c)
	for {
		for {
			d := w.pool.get()
			w.send.Payload = d.payload
			more := c.core.PollSend(now, &w.send)
			d.payload = w.send.Payload
			if !more {
				w.pool.put(d)
				break
			}
			w.post(c, d)
		}
		for c.core.PollEvent(&w.event) {
			w.handle(c, &w.event)
		}
		if c.steer == 0 {
			break
		}
		old := c.steer
		c.steer = 0
		w.rebind(c, old)
	}
	if at, ok := c.core.Deadline(); ok && at < c.armed {
		c.armed = max(at, w.now)
		w.queue.plan(event{at: c.armed, kind: evTimer, who: int32(c.index)})
	}
}

// handle takes one event.
func (w *World) handle(c *client, ev *core.Event) {
	switch ev.Kind {
	case core.EventCompleted:
		w.completed(c, &ev.Completion)
	case core.EventLookup:
		w.lookUp(c, &ev.Lookup)
	case core.EventCancelLookup:
		delete(c.lookups, ev.Lookup.ID)
	case core.EventSteer:
		c.steer = ev.Socket
	case core.EventMembershipChanged:
		c.members = ev.Membership
		w.tellMembership(c)
	case core.EventDiscoveryFailed:
		r := w.tell(RecordDiscoveryFailed)
		r.Client, r.Err = c.index, ev.Err
		w.hear(r)
	case core.EventFailingFast, core.EventRecovered: // RecordSubmit has what comes of it
	}
}

func (w *World) tellMembership(c *client) {
	r := w.tell(RecordMembership)
	r.Client, r.Servers = c.index, c.members
	w.hear(r)
}

// post sends a datagram from the current socket.
func (w *World) post(c *client, d *datagram) {
	send := &w.send
	if len(c.sockets) == 0 {
		first := c.ports.word(0)
		w.openSocket(c, uint16(ephemeralFirst+share(first, ephemeralLast-ephemeralFirst+1)))
	}
	s := c.sockets[len(c.sockets)-1]
	d.client, d.server, d.kind, d.port = int32(c.index), int32(w.serverAt(send.To)), send.Kind, s.port
	var ordinal, class uint64
	if p := c.pending[send.Ref.Request]; p != nil {
		d.request, ordinal = p.number, p.ordinal
		if send.Kind == core.SendFirst || send.Kind == core.SendReplay {
			p.sentFrom(s)
		}
	} else if o, ok := c.owed[send.Ref.Request]; ok {
		d.request, ordinal = o.number, o.ordinal
	} else {
		c.reported++
		ordinal, class = c.reported, 1
	}
	d.luck = thing(uint64(c.index), class, ordinal, uint64(send.Kind), uint64(send.Ref.Round), uint64(send.Server))
	w.counts.Sent[send.Kind]++
	r := w.tell(RecordSend)
	w.about(r, d)
	r.Round, r.Port, r.Payload = send.Ref.Round, netip.AddrPortFrom(c.addr, s.port), d.payload
	w.hear(r)
	w.transmit(d)
}

// arriveAtClient hands an answer in.
func (w *World) arriveAtClient(d *datagram) {
	c := &w.clients[d.client]
	s := c.socketAt(d.port)
	if s == nil {
		w.lose(d, LostSocket)
		return
	}
	verdict := c.core.HandleDatagram(w.coreTime(c), s.id, d.payload)
	r := w.tell(RecordResponse)
	w.about(r, d)
	r.Port = netip.AddrPortFrom(c.addr, d.port)
	r.Received, r.Granted, r.Keep = verdict, d.granted, d.keep
	w.hear(r)
	w.end(d)
	w.settle(c)
}
