package dnszone

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/ident"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustZone makes a zone from arguments that are right.
func mustZone(t testing.TB, c Config, members ...Member) *Zone {
	t.Helper()
	z, err := New(c)
	if err == nil {
		err = z.SetMembers(members)
	}
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// parseMember reads "5@192.0.2.1:1,[2001:db8::1]:1".
func parseMember(s string) (Member, error) {
	id, list, _ := strings.Cut(s, "@")
	sid, err := ident.ParseServerID(id)
	if err != nil {
		return Member{}, err
	}
	m := Member{ID: sid}
	for a := range strings.SplitSeq(list, ",") {
		ap, err := netip.ParseAddrPort(a)
		if err != nil {
			return Member{}, err
		}
		m.Addrs = append(m.Addrs, ap)
	}
	return m, nil
}

// TestTranscripts shows what the zone answers, in the files of testdata/zone.
// Commands: "zone name=… [ttl=…] [serial=…] [ns=…] [ns-addrs=…] [keys=…]"
// makes one, "members", with one a line, replaces its members, "keys ids=(…)" its
// keys, and "ask" answers one question a line:
// NAME TYPE [tcp] [class=CH] [edns=SIZE] [do] [edns-version=N] [opcode=NOTIFY].
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/zone", func(t *testing.T, path string) {
		var z *Zone
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "zone":
				var err error
				if z, err = New(configOf(t, d)); err != nil {
					return err.Error()
				}
				return fmt.Sprintf("%s serial %d", z.Name(), z.Serial())
			case "members":
				var members []Member
				for line := range strings.Lines(d.Input) {
					m, err := parseMember(strings.TrimSpace(line))
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					members = append(members, m)
				}
				if err := z.SetMembers(members); err != nil {
					return err.Error()
				}
				return fmt.Sprintf("serial %d", z.Serial())
			case "keys":
				z.SetKeyIDs(keysOf(t, d))
				return fmt.Sprintf("serial %d", z.Serial())
			case "ask":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					b.WriteString(ask(t, z, strings.Fields(line)))
				}
				return b.String()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func configOf(t *testing.T, d *datadriven.TestData) Config {
	var c Config
	var ttl, ns string
	var serial int
	d.MaybeScanArgs(t, "name", &c.Zone)
	d.MaybeScanArgs(t, "ttl", &ttl)
	d.MaybeScanArgs(t, "serial", &serial)
	d.MaybeScanArgs(t, "ns", &c.NameServer)
	if ttl != "" {
		c.TTL, _ = time.ParseDuration(ttl)
	}
	c.Serial = uint32(serial)
	if d.MaybeScanArgs(t, "ns-addr", &ns) {
		c.NameServerAddrs = []netip.Addr{netip.MustParseAddr(ns)}
	}
	c.KeyIDs = keysOf(t, d)
	return c
}

func keysOf(t *testing.T, d *datadriven.TestData) []uint64 {
	var text string
	if !d.MaybeScanArgs(t, "ids", &text) {
		return nil
	}
	ids := []uint64{}
	for s := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '+' }) {
		id, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		ids = append(ids, id)
	}
	return ids
}

// ask puts a question through bytes, both ways, and prints what comes back.
func ask(t *testing.T, z *Zone, f []string) string {
	t.Helper()
	q, udp := questionOf(t, f)
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	out := z.respond(b, udp)
	if out == nil {
		return strings.Join(f, " ") + "\n  (no answer)\n"
	}
	m := new(dns.Msg)
	if err := m.Unpack(out); err != nil {
		t.Fatal(err)
	}
	if m.Id != q.Id || !m.Response {
		t.Errorf("%v: the answer is not to this question", f)
	}
	return strings.Join(f, " ") + "\n" + show(m)
}

func questionOf(t *testing.T, f []string) (q *dns.Msg, udp bool) {
	t.Helper()
	q, udp = new(dns.Msg), true
	qtype, ok := dns.StringToType[f[1]]
	if !ok {
		n, err := strconv.ParseUint(strings.TrimPrefix(f[1], "TYPE"), 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		qtype = uint16(n)
	}
	q.SetQuestion(f[0], qtype)
	for _, arg := range f[2:] {
		key, value, _ := strings.Cut(arg, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "tcp":
			udp = false
		case "class":
			q.Question[0].Qclass = dns.StringToClass[value]
		case "opcode":
			q.Opcode = dns.StringToOpcode[value]
		case "edns":
			q.SetEdns0(uint16(n), false)
		case "do":
			q.IsEdns0().SetDo()
		case "edns-version":
			q.IsEdns0().SetVersion(uint8(n))
		case "twice":
			q.Extra = append(q.Extra, q.Extra[0])
		case "norec":
			q.RecursionDesired = false
		default:
			t.Fatalf("unknown argument %s", arg)
		}
	}
	return q, udp
}

func show(m *dns.Msg) string {
	var b strings.Builder
	code := dns.RcodeToString[m.Rcode]
	if m.Rcode == dns.RcodeBadVers { // the library prints the other meaning of 16
		code = "BADVERS"
	}
	fmt.Fprintf(&b, "  %s", code)
	for _, f := range []struct {
		on   bool
		name string
	}{
		{m.Authoritative, "aa"}, {m.Truncated, "tc"}, {m.RecursionDesired, "rd"}, {m.RecursionAvailable, "ra"}, {m.AuthenticatedData, "ad"},
	} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	if len(m.Question) == 0 {
		b.WriteString(" (no question)")
	}
	b.WriteByte('\n')
	for _, s := range []struct {
		name string
		rrs  []dns.RR
	}{{"answer", m.Answer}, {"authority", m.Ns}, {"additional", m.Extra}} {
		for _, rr := range s.rrs {
			if opt, ok := rr.(*dns.OPT); ok {
				fmt.Fprintf(&b, "  EDNS version %d, size %d, do %t\n", opt.Version(), opt.UDPSize(), opt.Do())
				continue
			}
			fmt.Fprintf(&b, "  %-10s %s\n", s.name, strings.Join(strings.Fields(rr.String()), " "))
		}
	}
	return b.String()
}
