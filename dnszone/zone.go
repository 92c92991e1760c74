package dnszone

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/ident"
)

const (
	defaultTTL  = 5 * time.Second
	maxTTL      = 24 * time.Hour
	negativeTTL = 1 // seconds: the SOA minimum; a new server is seen this late at most
)

// Config says what a zone is.
type Config struct {
	// Zone is its name, such as "rl.example.com": ASCII letters, digits, '-'
	// and '_' in labels of at most 63 octets, at most 212 in all.
	Zone string
	// KeyIDs are the API key IDs that have servers here. Nil is every ID, which
	// suits servers that all have the same keys; an empty list is none.
	KeyIDs []uint64
	// TTL of every record, whole seconds up to a day; 0 is 5 s. A server that
	// has gone is still asked this long.
	TTL time.Duration
	// Serial is the first SOA serial; 0 is 1. It rises by one with every
	// change. Secondaries and monitors want it to rise over restarts too: the
	// Unix time in seconds does.
	Serial uint32
	// NameServer is the host that the NS and SOA records name; "" is "ns" in
	// the zone. Below the zone it is one label, and NameServerAddrs are its
	// addresses; elsewhere it has its addresses there, and none are given here.
	NameServer      string
	NameServerAddrs []netip.Addr
}

// Zone is the record set of one zone. All methods are safe for concurrent use,
// and a question is answered from one state: never half from before a change.
type Zone struct {
	name    string // canonical: lower case, trailing dot
	ttl     uint32 // seconds
	ns      string
	nsLabel string // "" when the name server lives in another zone
	nsHost  *host

	mu    sync.Mutex // serializes changes
	state atomic.Pointer[state]
}

// state is immutable.
type state struct {
	serial uint32
	hosts  []*host // oldest first
	byID   map[ident.ServerID]*host
	anyKey bool
	keys   map[uint64]bool
}

// New makes a zone without members. Errors name the field.
func New(c Config) (*Zone, error) {
	if err := checkZone(c.Zone); err != nil {
		return nil, err
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.TTL < time.Second || c.TTL > maxTTL || c.TTL%time.Second != 0 {
		return nil, fmt.Errorf("dnszone: TTL %v: give whole seconds, between 1s and %v", c.TTL, maxTTL)
	}
	z := &Zone{name: canonical(c.Zone), ttl: uint32(c.TTL / time.Second)}
	if err := z.setNameServer(c.NameServer, c.NameServerAddrs); err != nil {
		return nil, err
	}
	st := &state{serial: max(c.Serial, 1)}
	st.setKeys(c.KeyIDs)
	z.state.Store(st)
	return z, nil
}

func (z *Zone) setNameServer(name string, addrs []netip.Addr) error {
	if name == "" {
		name = "ns." + z.name
	}
	if err := checkHostName(name); err != nil {
		return err
	}
	z.ns = canonical(name)
	label, below := strings.CutSuffix(z.ns, "."+z.name)
	if !below {
		if len(addrs) > 0 {
			return fmt.Errorf("dnszone: NameServer %s is not in the zone, so its addresses are not ours to tell; leave NameServerAddrs empty", name)
		}
		return nil
	}
	if strings.Contains(label, ".") || strings.HasPrefix(label, "s-") || strings.HasPrefix(label, "c-") {
		return fmt.Errorf("dnszone: NameServer %s: a name server in the zone is one label there, not s-… or c-…, which servers and keys have", name)
	}
	h := &host{}
	for _, ip := range addrs {
		ip = ip.Unmap()
		if err := checkEndpoint(netip.AddrPortFrom(ip, 53)); err != nil {
			return fmt.Errorf("dnszone: NameServerAddrs: %w", err)
		}
		if ip.Is4() {
			h.v4 = append(h.v4, ip)
		} else {
			h.v6 = append(h.v6, ip)
		}
	}
	z.nsLabel, z.nsHost = label, h
	return nil
}

// Name returns the zone's name, in lower case and without a trailing dot.
func (z *Zone) Name() string { return strings.TrimSuffix(z.name, ".") }

// Serial returns the serial of the SOA record.
func (z *Zone) Serial() uint32 { return z.state.Load().serial }

// Members returns the members, oldest first, their addresses sorted.
func (z *Zone) Members() []Member {
	st := z.state.Load()
	out := make([]Member, len(st.hosts))
	for i, h := range st.hosts {
		out[i] = h.member()
	}
	return out
}

// SetMembers replaces the members. With the same ones as before it does
// nothing; otherwise the serial rises. On an error (two members with one ID, an
// address that nobody can be reached at, more than [MaxRecords]) the zone stays
// as it was. An empty list is allowed: the names then have no data.
func (z *Zone) SetMembers(members []Member) error {
	hosts, err := newHosts(members)
	if err != nil {
		return fmt.Errorf("dnszone: %w", err)
	}
	z.change(func(st *state) bool { return st.setHosts(hosts) })
	return nil
}

// SetKeyIDs replaces the API key IDs that have servers here, with the meaning of
// Config.KeyIDs. The serial rises when they are others than before.
func (z *Zone) SetKeyIDs(ids []uint64) {
	z.change(func(st *state) bool { return st.setKeys(ids) })
}

// Set is [Zone.SetMembers] and [Zone.SetKeyIDs] in one: no question sees one
// without the other.
func (z *Zone) Set(members []Member, keyIDs []uint64) error {
	hosts, err := newHosts(members)
	if err != nil {
		return fmt.Errorf("dnszone: %w", err)
	}
	z.change(func(st *state) bool {
		changed := st.setHosts(hosts)
		return st.setKeys(keyIDs) || changed
	})
	return nil
}

// change applies f to a copy of the state and, if f says that it differs, puts
// it in place under the next serial.
func (z *Zone) change(f func(*state) bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	next := *z.state.Load()
	if !f(&next) {
		return
	}
	if next.serial++; next.serial == 0 { // RFC 1982 goes round; keep clear of 0
		next.serial = 1
	}
	z.state.Store(&next)
}

// setHosts reports whether the hosts are others than before.
func (st *state) setHosts(hosts []*host) bool {
	if slices.EqualFunc(st.hosts, hosts, (*host).equal) {
		return false
	}
	st.hosts, st.byID = hosts, make(map[ident.ServerID]*host, len(hosts))
	for _, h := range hosts {
		st.byID[h.id] = h
	}
	return true
}

// setKeys reports whether the keys are others than before.
func (st *state) setKeys(ids []uint64) bool {
	keys := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		keys[id] = true
	}
	if st.anyKey == (ids == nil) && maps.Equal(st.keys, keys) {
		return false
	}
	st.anyKey, st.keys = ids == nil, keys
	return true
}

func newHosts(members []Member) ([]*host, error) {
	hosts := make([]*host, 0, len(members))
	records := 0
	for _, m := range members {
		h, err := newHost(m)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
		records += len(h.ports)
	}
	slices.SortFunc(hosts, func(a, b *host) int {
		if a.id.Older(b.id) {
			return -1
		}
		if b.id.Older(a.id) {
			return 1
		}
		return 0
	})
	for i := 1; i < len(hosts); i++ {
		if hosts[i].id == hosts[i-1].id {
			return nil, fmt.Errorf("two members have the ID %v; every server process has its own", hosts[i].id)
		}
	}
	if records > MaxRecords {
		return nil, fmt.Errorf("the members need %d SRV records; a zone holds %d", records, MaxRecords)
	}
	return hosts, nil
}

var errEmptyZone = errors.New("dnszone: Zone is empty; give a name such as rl.example.com")
