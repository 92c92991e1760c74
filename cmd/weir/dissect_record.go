package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// record is one datagram, in the order of the wire and with its names. IDs are
// strings: many JSON readers lose digits of 64-bit numbers.
type record struct {
	Line        int         `json:"line"`
	Kind        string      `json:"kind,omitempty"`
	Layout      wire.Layout `json:"layout,omitempty"`
	LayoutFrom  string      `json:"layout_from,omitempty"`
	Auth        string      `json:"auth"`
	Authentic   *bool       `json:"authentic,omitempty"`
	Encrypted   bool        `json:"encrypted,omitempty"`
	Bytes       int         `json:"bytes"`
	HeaderSize  int         `json:"header_size"`
	KeyID       string      `json:"key_id,omitempty"`
	ServerID    string      `json:"server_id,omitempty"`
	ServerStart string      `json:"server_start,omitempty"`
	UniqueID    string      `json:"unique_id"`
	TimeStamp   uint64      `json:"time_stamp"`
	Time        string      `json:"time,omitempty"`
	Steering    uint8       `json:"steering_feedback"`
	Mgmt        uint8       `json:"tenant_mgmt_flag"`
	Nonce       string      `json:"nonce,omitempty"`
	PDUBytes    int         `json:"pdu_bytes"`
	DedupTTL    *uint32     `json:"dedup_ttl_ms,omitempty"`
	Word        *uint32     `json:"word,omitempty"`
	Granted     *bool       `json:"granted,omitempty"`
	Guards      []guard     `json:"guards,omitzero"`
	Resources   []resource  `json:"resources,omitzero"`
	Reports     []observed  `json:"reports,omitzero"`
	Label       string      `json:"label,omitempty"`
	TLVs        []tlv       `json:"tlvs,omitempty"`
	Trailing    string      `json:"trailing,omitempty"`
}

type guard struct {
	Tracker    string  `json:"latency_tracker_id"`
	TTL        uint32  `json:"ttl_ms"`
	MaxSamples uint32  `json:"max_samples"`
	BufferSize *uint32 `json:"buffer_size,omitempty"`
	MinSamples uint32  `json:"min_sample_threshold"`
	Threshold  uint32  `json:"latency_threshold"`
	Latency    uint32  `json:"current_latency"`
}

// resource has the names of a request or those of a response.
type resource struct {
	Bucket  string  `json:"bucket_id"`
	Window  uint32  `json:"window_size_ms"`
	Limit   *uint32 `json:"rate_limit,omitempty"`
	Tokens  *uint16 `json:"tokens_requested,omitempty"`
	Rate    *uint32 `json:"actual_rate,omitempty"`
	Deficit *uint16 `json:"tokens_deficit,omitempty"`
}

type observed struct {
	Tracker    string  `json:"latency_tracker_id"`
	TTL        uint32  `json:"ttl_ms"`
	MaxSamples uint32  `json:"max_samples"`
	BufferSize *uint32 `json:"buffer_size,omitempty"`
	MinSamples uint32  `json:"min_sample_threshold"`
	Latency    uint32  `json:"observed_latency"`
}

// tlv is a TLV behind the blocks that is not the label.
type tlv struct {
	Type string `json:"type"`
	Body string `json:"body"`
}

// The ways in which a layout was found.
const (
	layoutFromLengths = "lengths"    // the rule for requests and reports
	layoutFromFit     = "first fit"  // a response: 2 before 1
	layoutFromFlag    = "flag"       // a response: --layout
	layoutCoincide    = "coinciding" // without guards the layouts are the same
)

// datagram takes one datagram apart. Beside an error the record is nil, or what
// could be read before it.
func (d *dissector) datagram(b []byte) (*record, error) {
	var env wire.Envelope
	if err := wire.ParseEnvelope(b, &env); err != nil {
		return nil, err
	}
	r := envelopeRecord(&env)
	pdu, err := d.open(&env, r)
	if err != nil || r.Encrypted {
		return r, err
	}
	if err := d.pdu(pdu, r); err != nil {
		return nil, err
	}
	return r, nil
}

func envelopeRecord(env *wire.Envelope) *record {
	h := &env.Header
	r := &record{
		Auth:       env.Auth.String(),
		Bytes:      len(env.Datagram()),
		HeaderSize: env.HeaderSize(),
		KeyID:      strconv.FormatUint(h.KeyID, 10),
		UniqueID:   hex.EncodeToString(h.UniqueID[:]),
		TimeStamp:  h.Timestamp,
		Steering:   h.Steering,
		Mgmt:       h.Mgmt,
		Nonce:      hex.EncodeToString(env.Nonce()),
		PDUBytes:   len(env.Sealed()),
	}
	const year10000 = 253402300800000 // RFC 3339 ends there
	if h.Timestamp < year10000 {
		r.Time = time.UnixMilli(int64(h.Timestamp)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	return r
}

// open authenticates and decrypts as far as the key allows, and says so in r.
func (d *dissector) open(env *wire.Envelope, r *record) ([]byte, error) {
	r.Encrypted = env.Auth == apikey.AuthAES
	if d.cred == nil || d.cred.Auth() != env.Auth || env.Auth == apikey.AuthNone {
		return env.Sealed(), nil
	}
	pdu, err := d.cred.Open(env, &d.scratch)
	authentic := err == nil
	r.Authentic = &authentic
	if err != nil && !r.Encrypted {
		// A foreign cookie hides nothing.
		return env.Sealed(), nil
	}
	if err == nil {
		r.Encrypted = false
	}
	return pdu, err
}

func (d *dissector) pdu(pdu []byte, r *record) error {
	kind, err := wire.PDUKind(pdu)
	if err != nil {
		return err
	}
	r.Kind = kind.String()
	switch kind {
	case wire.KindRequest:
		return requestRecord(pdu, r)
	case wire.KindReport:
		return reportRecord(pdu, r)
	case wire.KindResponse:
		return d.responseRecord(pdu, r)
	}
	return fmt.Errorf("this program cannot show a PDU of kind %v", kind)
}

func requestRecord(pdu []byte, r *record) error {
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		return err
	}
	r.setLayout(v.Layout, v.Guards(), layoutFromLengths)
	r.setPDU(v.PDU(), v.Trailing())
	r.DedupTTL = &v.DedupTTL
	r.Guards = make([]guard, v.Guards())
	for i := range r.Guards {
		r.Guards[i] = guardRecord(v.Guard(i), v.Layout)
	}
	r.Resources = make([]resource, v.Resources())
	for i := range r.Resources {
		b := v.Resource(i)
		r.Resources[i] = resource{Bucket: b.Bucket.String(), Window: b.Window, Limit: &b.Rate, Tokens: &b.Tokens}
	}
	r.Label = safeText(v.Label())
	r.setTLVs(v.Rest(), len(v.Label()) > 0)
	return nil
}

func (d *dissector) responseRecord(pdu []byte, r *record) error {
	v, layout, from, err := d.parseResponse(pdu)
	if err != nil {
		return err
	}
	r.setLayout(layout, v.Guards(), from)
	r.setPDU(v.PDU(), v.Trailing())
	r.setServer()
	word := v.Word()
	r.Word = &word
	granted := true
	r.Guards = make([]guard, v.Guards())
	for i := range r.Guards {
		g := v.Guard(i)
		granted = granted && g.Latency < g.Threshold
		r.Guards[i] = guardRecord(g, layout)
	}
	r.Resources = make([]resource, v.Resources())
	for i := range r.Resources {
		b := v.Resource(i)
		granted = granted && b.Tokens == 0
		r.Resources[i] = resource{Bucket: b.Bucket.String(), Window: b.Window, Rate: &b.Rate, Deficit: &b.Tokens}
	}
	r.Granted = &granted
	r.setTLVs(v.Rest(), false)
	return nil
}

// parseResponse reads a response in the layout asked for, or in the first that
// fits.
func (d *dissector) parseResponse(pdu []byte) (v wire.ResponseView, layout wire.Layout, from string, err error) {
	if d.response != 0 {
		err = wire.ParseResponse(pdu, d.response, &v)
		return v, d.response, layoutFromFlag, err
	}
	for _, layout = range [...]wire.Layout{wire.Layout2, wire.Layout1} {
		fit := wire.ParseResponse(pdu, layout, &v)
		if fit == nil {
			return v, layout, layoutFromFit, nil
		}
		// The layouts mostly fail for one reason; the preferred one's is told.
		if err == nil {
			err = fit
		}
	}
	return v, 0, "", err
}

func reportRecord(pdu []byte, r *record) error {
	var v wire.ReportView
	if err := wire.ParseReport(pdu, &v); err != nil {
		return err
	}
	r.setLayout(v.Layout, v.Len(), layoutFromLengths)
	r.setPDU(v.PDU(), v.Trailing())
	word := v.Word()
	r.Word = &word
	r.Reports = make([]observed, v.Len())
	for i := range r.Reports {
		o := v.At(i)
		r.Reports[i] = observed{
			Tracker: o.Tracker.String(), TTL: o.TTL, MaxSamples: o.MaxSamples,
			BufferSize: inLayout1(o.BufferSize, v.Layout), MinSamples: o.MinSamples, Latency: o.Latency,
		}
	}
	return nil
}

func guardRecord(g wire.Guard, l wire.Layout) guard {
	return guard{
		Tracker: g.Tracker.String(), TTL: g.TTL, MaxSamples: g.MaxSamples,
		BufferSize: inLayout1(g.BufferSize, l), MinSamples: g.MinSamples, Threshold: g.Threshold, Latency: g.Latency,
	}
}

// inLayout1 returns a field that layout 2 does not have.
func inLayout1(v uint32, l wire.Layout) *uint32 {
	if l != wire.Layout1 {
		return nil
	}
	return &v
}

func (r *record) setLayout(l wire.Layout, blocks int, from string) {
	r.Layout, r.LayoutFrom = l, from
	if blocks == 0 && from != layoutFromFlag {
		r.LayoutFrom = layoutCoincide
	}
}

func (r *record) setPDU(pdu, trailing []byte) {
	r.PDUBytes = len(pdu)
	r.Trailing = hex.EncodeToString(trailing)
}

// setServer turns the header's key ID into the server ID that it is in a
// response.
func (r *record) setServer() {
	r.ServerID, r.KeyID = r.KeyID, ""
	if id, err := ident.ParseServerID(r.ServerID); err == nil {
		r.ServerStart = id.Start().Format(time.RFC3339)
	}
}

// setTLVs lists the TLVs of the rest, without the label that is shown already.
func (r *record) setTLVs(rest []byte, label bool) {
	for len(rest) > 0 {
		typ, body, next, ok := wire.NextTLV(rest)
		if !ok {
			return
		}
		rest = next
		if label && typ == wire.TypeLabel {
			label = false
			continue
		}
		r.TLVs = append(r.TLVs, tlv{Type: fmt.Sprintf("0x%04x", typ), Body: hex.EncodeToString(body)})
	}
}

// safeText makes hostile bytes safe to show: everything that is not a printable
// character of valid UTF-8 is escaped, and so is the escaping character.
func safeText(b []byte) string {
	quoted := strconv.Quote(string(b))
	return quoted[1 : len(quoted)-1]
}
