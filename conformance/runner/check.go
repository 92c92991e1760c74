package runner

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/wire"
)

// A Finding is something that a client did and should not have, or the other way
// round.
type Finding struct {
	Rule    string `json:"rule"`    // in a word
	Section string `json:"section"` // where it is written, such as docs/protocol.md#pdu
	Want    string `json:"want"`
	Got     string `json:"got"`
}

// String says it in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: expected %s; came %s (%s)", f.Rule, f.Want, f.Got, f.Section)
}

// Sections that findings name.
const (
	secHeader    = "docs/protocol.md#tenant-header"
	secAuth      = "docs/protocol.md#authentication"
	secPDU       = "docs/protocol.md#pdu"
	secLayouts   = "docs/protocol.md#layouts"
	secIDs       = "docs/protocol.md#ids"
	secKeys      = "docs/protocol.md#api-keys"
	secFields    = "docs/policy.md#fields"
	secRounds    = "docs/policy.md#rounds"
	secSteering  = "docs/architecture.md#steering"
	secDiscovery = "docs/protocol.md#discovery"
	secLines     = "conformance/README.md#the-line-protocol"
)

// clockSlack is how far a datagram's timestamp may be from the machine's clock.
const clockSlack = 2 * time.Second

// A datagram is a packet that was taken apart.
type datagram struct {
	packet
	envelope wire.Envelope
	kind     wire.Kind
	label    string // of a request
	request  wire.RequestView
	report   wire.ReportView
}

// inspector holds datagrams of one client to the format.
type inspector struct {
	scribe *scribe
	layout wire.Layout
	dedup  uint32 // ms
	found  []Finding
}

func (in *inspector) fail(rule, section, want, got string, args ...any) {
	in.found = append(in.found, Finding{rule, section, want, fmt.Sprintf(got, args...)})
}

// open takes a packet apart. It is nil if that cannot be done, and the reason is
// among the findings.
func (in *inspector) open(p *packet) *datagram {
	d := &datagram{packet: *p}
	if err := wire.ParseEnvelope(p.data, &d.envelope); err != nil {
		in.fail("format", secHeader, "a datagram of the protocol", "%d bytes to %s: %v", len(p.data), p.server, err)
		return nil
	}
	pdu, err := in.scribe.good.Open(&d.envelope, &wire.Scratch{})
	if err != nil {
		in.fail("authentication", secAuth, "a datagram that the key opens", "one to %s: %v", p.server, err)
		return nil
	}
	in.checkHeader(d)
	kind, err := wire.PDUKind(pdu)
	if err != nil {
		in.fail("format", secPDU, "a rate request or a latency report", "a datagram to %s: %v", p.server, err)
		return nil
	}
	switch d.kind = kind; kind {
	case wire.KindRequest:
		err = wire.ParseRequest(pdu, &d.request)
	case wire.KindReport:
		err = wire.ParseReport(pdu, &d.report)
	default:
		err = fmt.Errorf("a %v", kind)
	}
	if err != nil {
		in.fail("format", secPDU, "a rate request or a latency report", "a datagram to %s: %v", p.server, err)
		return nil
	}
	if kind == wire.KindRequest {
		d.label = string(d.request.Label())
		in.checkRequest(d)
	} else {
		in.checkTrailing(d.report.Trailing())
		if d.report.Word() != 0 {
			in.fail("format", secPDU, "0 in the word of a report", "%d", d.report.Word())
		}
	}
	return d
}

func (in *inspector) checkHeader(d *datagram) {
	h := &d.envelope.Header
	if size := d.envelope.HeaderSize(); size != 40 {
		in.fail("format", secHeader, "a tenant header of 40 bytes", "%d", size)
	}
	if h.KeyID != in.scribe.good.KeyID() {
		in.fail("key-id", secHeader, fmt.Sprintf("the key's ID %d", in.scribe.good.KeyID()), "%d", h.KeyID)
	}
	if h.Mgmt != 0 || d.data[38] != 0 || d.data[39] != 0 {
		in.fail("format", secHeader, "0 in tenant_mgmt_flag and padding", "% x", d.data[37:40])
	}
	if off := d.at.Sub(time.UnixMilli(int64(h.Timestamp))); off > clockSlack || off < -clockSlack {
		in.fail("timestamp", secHeader, "the sender's clock in Unix milliseconds", "%d, which is %v off", h.Timestamp, off)
	}
}

func (in *inspector) checkRequest(d *datagram) {
	v := &d.request
	in.checkTrailing(v.Trailing())
	if v.DedupTTL != in.dedup {
		in.fail("dedup-ttl", secFields, fmt.Sprintf("the horizon in milliseconds rounded up, %d, as dedup_ttl_ms", in.dedup), "%d", v.DedupTTL)
	}
	if v.Guards() > 0 && v.Layout != in.layout {
		in.fail("layout", secLayouts, in.layout.String(), "%v", v.Layout)
	}
	for i := range v.Guards() {
		if l := v.Guard(i).Latency; l != 0 {
			in.fail("format", secLayouts, "0 as current_latency in a request", "%d", l)
		}
	}
	rest := v.Rest()
	blocks := v.PDU()[len(v.PDU())-len(rest)-28*v.Resources():]
	for i := range v.Resources() {
		if pad := blocks[28*i+26 : 28*i+28]; pad[0]|pad[1] != 0 {
			in.fail("format", secPDU, "0 in a resource's padding", "% x", pad)
		}
	}
	in.checkRest(rest)
}

// checkRest holds what follows the blocks to be the metrics label and nothing else.
func (in *inspector) checkRest(rest []byte) {
	labels := 0
	for len(rest) > 0 {
		typ, body, more, ok := wire.NextTLV(rest)
		if !ok || typ != wire.TypeLabel {
			in.fail("label", secPDU, "a metrics label and no other TLV behind the blocks", "% x", rest)
			return
		}
		labels++
		if len(body)%4 != 0 || len(body) < 2 {
			in.fail("label", secPDU, "a metrics label whose size is a multiple of 4", "%d", len(body)+4)
			return
		}
		length := int(body[0]) | int(body[1])<<8
		if 2+length > len(body) || len(bytes.Trim(body[2+length:], "\x00")) > 0 {
			in.fail("label", secPDU, "a metrics label padded with 0", "% x", body)
		}
		rest = more
	}
	if labels > 1 {
		in.fail("label", secPDU, "one metrics label", "%d", labels)
	}
}

func (in *inspector) checkTrailing(b []byte) {
	if len(b) > 0 {
		in.fail("format", secPDU, "nothing behind the PDU", "%d bytes", len(b))
	}
}

// checkAsked holds a request to what was asked, in any order.
func (in *inspector) checkAsked(d *datagram, s *conformance.Submit) {
	v := &d.request
	var want, got []string
	for i := range s.Guards {
		want = append(want, sayGuard(encodeGuard(&s.Guards[i], in.layout)))
	}
	for i := range s.Resources {
		want = append(want, sayResource(encodeResource(&s.Resources[i])))
	}
	for i := range v.Guards() {
		got = append(got, sayGuard(v.Guard(i)))
	}
	for i := range v.Resources() {
		got = append(got, sayResource(v.Resource(i)))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		in.fail("blocks", secIDs, fmt.Sprint(want), "%v", got)
	}
}

func sayGuard(g wire.Guard) string {
	return fmt.Sprintf("guard %v ttl %d max %d buffer %d min %d below %d", g.Tracker, g.TTL, g.MaxSamples, g.BufferSize, g.MinSamples, g.Threshold)
}

func sayResource(r wire.Resource) string {
	return fmt.Sprintf("bucket %v window %d limit %d tokens %d", r.Bucket, r.Window, r.Rate, r.Tokens)
}

func sayObservation(o wire.Observation) string {
	return fmt.Sprintf("tracker %v ttl %d max %d buffer %d min %d took %d", o.Tracker, o.TTL, o.MaxSamples, o.BufferSize, o.MinSamples, o.Latency)
}
