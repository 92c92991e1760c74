package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/ident"
	"pgregory.net/rapid"
)

// u32s favor the numbers in which a layout is easily misread: zeros, and what looks like a TLV.
func u32s() *rapid.Generator[uint32] {
	return rapid.OneOf(
		rapid.Just(uint32(0)), rapid.Just(^uint32(0)),
		rapid.Uint32(),
		rapid.Custom(func(t *rapid.T) uint32 {
			return uint32(rapid.IntRange(1, 12).Draw(t, "TLV size"))<<18 | uint32(rapid.Uint16().Draw(t, "TLV type"))
		}),
	)
}

func ids() *rapid.Generator[ident.ID] {
	return rapid.Custom(func(t *rapid.T) ident.ID {
		return ident.ID(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 4, 8, 12, 16, 0x4c, 0x4d, 0xff}), 16, 16).Draw(t, "id"))
	})
}

func requests() *rapid.Generator[Request] {
	return rapid.Custom(func(t *rapid.T) Request {
		r := Request{
			Layout:   rapid.SampledFrom([]Layout{Layout1, Layout2}).Draw(t, "layout"),
			DedupTTL: rapid.Uint32Range(1, ^uint32(0)).Draw(t, "ttl"),
			Label:    string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "label")),
		}
		for range rapid.IntRange(0, 12).Draw(t, "guards") {
			g := Guard{
				Tracker: ids().Draw(t, "tracker"), TTL: u32s().Draw(t, "ttl"), MaxSamples: u32s().Draw(t, "max"),
				MinSamples: u32s().Draw(t, "min"), Threshold: u32s().Draw(t, "threshold"),
			}
			if r.Layout == Layout1 {
				g.BufferSize = u32s().Draw(t, "buffer")
			}
			r.Guards = append(r.Guards, g)
		}
		for range rapid.IntRange(0, 12).Draw(t, "resources") {
			r.Resources = append(r.Resources, Resource{
				Bucket: ids().Draw(t, "bucket"), Window: u32s().Draw(t, "window"),
				Rate: u32s().Draw(t, "rate"), Tokens: rapid.Uint16().Draw(t, "tokens"),
			})
		}
		return r
	})
}

func headers() *rapid.Generator[Header] {
	return rapid.Custom(func(t *rapid.T) Header {
		return Header{
			KeyID:     7,
			UniqueID:  UniqueID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "unique id")),
			Timestamp: rapid.Uint64().Draw(t, "timestamp"),
			Steering:  rapid.Byte().Draw(t, "steering"),
			Mgmt:      rapid.Byte().Draw(t, "mgmt"),
		}
	})
}

func sameRequest(a, b *Request) bool {
	return a.Layout == b.Layout && a.DedupTTL == b.DedupTTL && a.Label == b.Label &&
		slices.Equal(a.Guards, b.Guards) && slices.Equal(a.Resources, b.Resources)
}

// What is built is read back as it was, in every mode; and its answer too. A layout 1 request that
// the rule takes for layout 2 is the only exception.
func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		auth := rapid.SampledFrom(modes).Draw(t, "mode")
		c := propertyCredentials[auth]
		r, h := requests().Draw(t, "request"), headers().Draw(t, "header")
		s := sealerAt(rapid.SliceOfN(rapid.Byte(), nonceSize, nonceSize).Draw(t, "nonce"))
		d, err := c.AppendRequest(nil, s, &h, &r)
		if size := RequestSize(auth, r.Layout, len(r.Guards), len(r.Resources), len(r.Label)); size > MaxDatagram {
			if !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%d bytes: %v", size, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		e, pdu, err := open(c, d)
		var v RequestView
		if err == nil {
			err = ParseRequest(pdu, &v)
		}
		if rule := ruleLayout(pdu[pduSize:]); len(r.Guards) > 0 && rule != r.Layout {
			if r.Layout == Layout2 {
				t.Fatal("a layout 2 request reads as layout 1")
			}
			return // layout 1 that reads as layout 2: see TestLayoutRule
		}
		if err != nil || e.Header != h {
			t.Fatalf("%v, header %+v, want %+v", err, e.Header, h)
		}
		got := requestOf(&v)
		if len(r.Guards) == 0 {
			got.Layout = r.Layout
		}
		if !sameRequest(&got, &r) {
			t.Fatalf("got  %+v\nwant %+v", got, r)
		}
		answerRoundTrip(t, c, s, &h, &v, len(d))
	})
}

func answerRoundTrip(t *rapid.T, c *Credential, s *Sealer, h *Header, v *RequestView, most int) {
	var a Answer
	for range v.Guards() {
		a.Latencies = append(a.Latencies, u32s().Draw(t, "latency"))
	}
	for range v.Resources() {
		a.Rates = append(a.Rates, u32s().Draw(t, "rate"))
		a.Deficits = append(a.Deficits, rapid.Uint16().Draw(t, "deficit"))
	}
	d, err := c.AppendResponse(nil, s, h, v, &a)
	if err != nil || len(d) > most {
		t.Fatalf("%v, %d bytes, the request had %d", err, len(d), most)
	}
	_, pdu, err := open(c, d)
	var got ResponseView
	if err == nil {
		err = ParseResponse(pdu, v.Layout, &got)
	}
	if err != nil || got.Guards() != v.Guards() || got.Resources() != v.Resources() {
		t.Fatalf("%v, %d guards, %d resources", err, got.Guards(), got.Resources())
	}
	for i := range v.Guards() {
		want := v.Guard(i)
		want.Latency = a.Latencies[i]
		if got.Guard(i) != want {
			t.Fatalf("guard %d: %+v, want %+v", i, got.Guard(i), want)
		}
	}
	for i := range v.Resources() {
		want := v.Resource(i)
		want.Rate, want.Tokens = a.Rates[i], a.Deficits[i]
		if got.Resource(i) != want {
			t.Fatalf("resource %d: %+v, want %+v", i, got.Resource(i), want)
		}
	}
}

func TestReportRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		auth := rapid.SampledFrom(modes).Draw(t, "mode")
		c, h := propertyCredentials[auth], headers().Draw(t, "header")
		l := rapid.SampledFrom([]Layout{Layout1, Layout2}).Draw(t, "layout")
		var obs []Observation
		for range rapid.IntRange(1, MaxObservations(auth, l)).Draw(t, "observations") {
			o := Observation{
				Tracker: ids().Draw(t, "tracker"), TTL: u32s().Draw(t, "ttl"), MaxSamples: u32s().Draw(t, "max"),
				MinSamples: u32s().Draw(t, "min"), Latency: u32s().Draw(t, "latency"),
			}
			if l == Layout1 {
				o.BufferSize = u32s().Draw(t, "buffer")
			}
			obs = append(obs, o)
		}
		nonce := rapid.SliceOfN(rapid.Byte(), nonceSize, nonceSize).Draw(t, "nonce")
		d, err := c.AppendReport(nil, sealerAt(nonce), &h, l, obs)
		if err != nil {
			t.Fatal(err)
		}
		e, pdu, err := open(c, d)
		var v ReportView
		if err == nil {
			err = ParseReport(pdu, &v)
		}
		if err != nil || e.Header != h || v.Layout != l || v.Len() != len(obs) {
			t.Fatalf("%v, %+v, %v, %d observations", err, e.Header, v.Layout, v.Len())
		}
		for i := range obs {
			if v.At(i) != obs[i] {
				t.Fatalf("observation %d: %+v, want %+v", i, v.At(i), obs[i])
			}
		}
	})
}

// The layout rule and its second statement agree on bodies that fit both layouts far more often than
// chance would have it. The seed is fixed, so that what the bodies cover is too.
func TestLayoutRuleTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	word := func() uint32 {
		switch rng.IntN(4) {
		case 0:
			return rng.Uint32()
		case 1:
			return uint32(1+rng.IntN(10))<<18 | uint32(rng.IntN(2))*TypeLabel // a TLV of 4 to 40 bytes
		}
		return 0
	}
	type class struct {
		fits2, fits1 bool
		want         Layout
	}
	seen := map[class]int{}
	for range 50000 {
		guards, resources := rng.IntN(7), rng.IntN(4)
		size := Layout(1 + rng.IntN(2)).guardSize()
		n := max(0, guards*size+resources*resourceSize+[]int{0, 0, 0, 4, 8, -4, 3}[rng.IntN(7)])
		var body []byte
		for len(body) < n {
			body = append(body, words(word())...)
		}
		body = body[:n]
		if at := n - 4*guards; at >= 0 && rng.IntN(2) == 0 {
			copy(body[at:], tlv(7, uint16(4*guards), ""))
		}
		for blank := rng.IntN(3); blank > 0 && guards > 0; blank = 0 {
			for end := Layout(blank).guardSize(); end <= n; end += Layout(blank).guardSize() {
				clear(body[end-4 : end])
			}
		}
		pdu := craft(guards, resources, body)[pduSize:]
		want := ruleLayout(pdu)
		got, ok := detect(pdu)
		if ok != (want != 0) || ok && got.layout != want {
			t.Fatalf("%v %v, want %v, of\n%x", got.layout, ok, want, pdu)
		}
		seen[class{new(blocks).split(pdu, Layout2), new(blocks).split(pdu, Layout1), want}]++
	}
	for _, c := range []class{
		{false, false, 0}, {true, false, Layout2}, {false, true, Layout1}, {true, true, Layout2}, {true, true, Layout1},
	} {
		if seen[c] < 100 {
			t.Errorf("%+v was seen %d times, too seldom to say much", c, seen[c])
		}
		delete(seen, c)
	}
	if len(seen) > 0 {
		t.Errorf("impossible: %+v", seen)
	}
}

// Parsing neither changes its input nor keeps anything but views of it.
func TestViewsPointIntoTheInput(t *testing.T) {
	pdu := craft(1, 1, guardBlock(1, 1, 2, 3, 4, 0), resourceBlock(9, 1000, 100, 1, 0), label(8, 2, "ab"))
	kept := bytes.Clone(pdu)
	var v RequestView
	if err := ParseRequest(pdu, &v); err != nil || !bytes.Equal(pdu, kept) {
		t.Fatal(err)
	}
	pdu[12] ^= 0xff
	pdu[len(pdu)-1] = 'B'
	if v.Guard(0).Tracker[0] != pdu[12] || string(v.Label()) != "aB" {
		t.Error("a view is a copy")
	}
}
