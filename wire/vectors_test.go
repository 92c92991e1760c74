package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/vectors"
)

// credentialFor makes the credential of a key in its text form, of either format.
func credentialFor(tb testing.TB, key string) *Credential {
	tb.Helper()
	k, err := apikey.ParseAny(key)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := NewCredential(k)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// sealerAt makes a sealer whose next nonce is the one given, nil without one.
func sealerAt(nonce []byte) *Sealer {
	if len(nonce) == 0 {
		return nil
	}
	s := &Sealer{used: uint64(binary.LittleEndian.Uint32(nonce[noncePrefix:]))}
	s.self = s
	copy(s.prefix[:], nonce)
	return s
}

// open takes a datagram apart and authenticates it; the PDU is a copy.
func open(c *Credential, datagram []byte) (Envelope, []byte, error) {
	var e Envelope
	if err := ParseEnvelope(datagram, &e); err != nil {
		return e, nil, err
	}
	var scratch Scratch
	pdu, err := c.Open(&e, &scratch)
	return e, bytes.Clone(pdu), err
}

func checkSent(t *testing.T, v *vectors.Sent, e *Envelope, c *Credential, pdu []byte) {
	t.Helper()
	want := Header{KeyID: c.KeyID(), UniqueID: UniqueID(v.Identity), Timestamp: v.Time, Steering: v.Steering}
	if e.Header != want {
		t.Errorf("header %+v, want %+v", e.Header, want)
	}
	if !bytes.Equal(e.Nonce(), v.Nonce) {
		t.Errorf("nonce %x, want %x", e.Nonce(), v.Nonce)
	}
	if !bytes.Equal(pdu, v.PDU) {
		t.Errorf("PDU\n%x, want\n%x", pdu, v.PDU)
	}
}

func TestRequestsOfOtherClients(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		t.Run(v.Case, func(t *testing.T) {
			c := credentialFor(t, v.Key)
			e, pdu, err := open(c, v.Datagram)
			if err != nil {
				t.Fatal(err)
			}
			checkSent(t, &v.Sent, &e, c, pdu)
			var view RequestView
			if err := ParseRequest(pdu, &view); err != nil {
				t.Fatal(err)
			}
			// Without guards the layouts coincide, and nothing tells which was meant.
			if len(v.Guards) > 0 && view.Layout != Layout(v.Layout) {
				t.Errorf("%v, want %v", view.Layout, Layout(v.Layout))
			}
			r := requestOf(&view)
			checkRequest(t, &v, &r)
			got, err := c.AppendRequest(nil, sealerAt(v.Nonce), &e.Header, &r)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, v.Datagram) {
				t.Errorf("rebuilt\n%x, want\n%x", got, v.Datagram)
			}
		})
	}
}

// requestOf copies what a view shows.
func requestOf(v *RequestView) Request {
	r := Request{Layout: v.Layout, DedupTTL: v.DedupTTL, Label: string(v.Label())}
	for i := range v.Guards() {
		r.Guards = append(r.Guards, v.Guard(i))
	}
	for i := range v.Resources() {
		r.Resources = append(r.Resources, v.Resource(i))
	}
	return r
}

// checkRequest compares a request with the inputs that made it.
func checkRequest(t *testing.T, v *vectors.Request, r *Request) {
	t.Helper()
	if r.DedupTTL != v.DedupTTL || r.Label != string(v.Label) {
		t.Errorf("TTL %d, label %q, want %d, %q", r.DedupTTL, r.Label, v.DedupTTL, v.Label)
	}
	if len(r.Guards) != len(v.Guards) || len(r.Resources) != len(v.Resources) {
		t.Fatalf("%d guards, %d resources, want %d, %d", len(r.Guards), len(r.Resources), len(v.Guards), len(v.Resources))
	}
	for i, in := range v.Guards {
		want := Guard{
			Tracker: trackerID(in.Tracker, v.Layout, in.TTL, in.MaxSamples, in.BufferSize, in.MinSamples),
			TTL:     in.TTL, MaxSamples: in.MaxSamples, BufferSize: in.BufferSize, MinSamples: in.MinSamples,
			Threshold: in.Threshold,
		}
		if v.OwnTrackerIDs() {
			want.Tracker = r.Guards[i].Tracker
		}
		if r.Guards[i] != want {
			t.Errorf("guard %d: %+v, want %+v", i, r.Guards[i], want)
		}
	}
	for i, in := range v.Resources {
		want := Resource{Bucket: ident.Bucket(string(in.Bucket), in.Window, in.Limit), Window: in.Window, Rate: in.Limit, Tokens: in.Tokens}
		if r.Resources[i] != want {
			t.Errorf("resource %d: %+v, want %+v", i, r.Resources[i], want)
		}
	}
}

func trackerID(name []byte, layout int, ttl, maxSamples, buffer, minSamples uint32) ident.ID {
	if layout == 1 {
		return ident.TrackerLayout1(string(name), ttl, maxSamples, buffer, minSamples)
	}
	return ident.Tracker(string(name), ttl, maxSamples, minSamples)
}

func TestReportsOfOtherClients(t *testing.T) {
	for _, v := range vectors.Reports(t) {
		t.Run(v.Case, func(t *testing.T) {
			c := credentialFor(t, v.Key)
			e, pdu, err := open(c, v.Datagram)
			if err != nil {
				t.Fatal(err)
			}
			checkSent(t, &v.Sent, &e, c, pdu)
			var view ReportView
			if err := ParseReport(pdu, &view); err != nil {
				t.Fatal(err)
			}
			if view.Layout != Layout(v.Layout) {
				t.Errorf("%v, want %v", view.Layout, Layout(v.Layout))
			}
			var obs []Observation
			for i := range view.Len() {
				obs = append(obs, view.At(i))
			}
			checkObservations(t, &v, obs)
			got, err := c.AppendReport(nil, sealerAt(v.Nonce), &e.Header, view.Layout, obs)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, v.Datagram) {
				t.Errorf("rebuilt\n%x, want\n%x", got, v.Datagram)
			}
		})
	}
}

// checkObservations compares a report with the inputs that made it. In layout 1 a client leaves out
// those whose buffer is over the key's quota.
func checkObservations(t *testing.T, v *vectors.Report, obs []Observation) {
	t.Helper()
	k, err := apikey.ParseAny(v.Key)
	if err != nil {
		t.Fatal(err)
	}
	var want []Observation
	for _, in := range v.Observations {
		if v.Layout == 1 && in.BufferSize > k.Quotas().LatencyBufferSize {
			continue
		}
		o := Observation{
			Tracker: trackerID(in.Tracker, v.Layout, in.TTL, in.MaxSamples, in.BufferSize, in.MinSamples),
			TTL:     in.TTL, MaxSamples: in.MaxSamples, BufferSize: in.BufferSize, MinSamples: in.MinSamples,
			Latency: in.Latency,
		}
		if v.OwnTrackerIDs() && len(want) < len(obs) {
			o.Tracker = obs[len(want)].Tracker
		}
		want = append(want, o)
	}
	if len(obs) != len(want) {
		t.Fatalf("%d observations, want %d", len(obs), len(want))
	}
	for i := range obs {
		if obs[i] != want[i] {
			t.Errorf("observation %d: %+v, want %+v", i, obs[i], want[i])
		}
	}
}

func TestLayoutTraps(t *testing.T) {
	for _, v := range vectors.Traps(t) {
		t.Run(v.Case, func(t *testing.T) {
			if v.Kind == "report" {
				var r ReportView
				if err := ParseReport(v.PDU, &r); err != nil || r.Layout != Layout(v.Layout) || r.Len() != v.Observations {
					t.Errorf("%v, %v, %d observations; want %+v", err, r.Layout, r.Len(), v)
				}
				return
			}
			var r RequestView
			if err := ParseRequest(v.PDU, &r); err != nil || r.Layout != Layout(v.Layout) || r.Guards() != v.Guards || r.Resources() != v.Resources {
				t.Errorf("%v, %v, %d guards, %d resources; want %+v", err, r.Layout, r.Guards(), r.Resources(), v)
			}
		})
	}
}
