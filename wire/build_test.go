package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/vectors"
)

func someGuards(n int) []Guard {
	gs := make([]Guard, n)
	for i := range gs {
		gs[i] = Guard{Tracker: ident.ID(id(i)), TTL: 60000, MaxSamples: 32, BufferSize: 8, MinSamples: 3, Threshold: 50}
	}
	return gs
}

func someResources(n int) []Resource {
	rs := make([]Resource, n)
	for i := range rs {
		rs[i] = Resource{Bucket: ident.ID(id(100 + i)), Window: 1000, Rate: 100, Tokens: uint16(i)}
	}
	return rs
}

var testHeader = Header{KeyID: 7, UniqueID: UniqueID{1, 2, 3}, Timestamp: 1796059766154, Steering: 1}

// RequestSize is what is built, and one more of anything than fits is too large.
func TestSizes(t *testing.T) {
	for _, auth := range modes {
		for _, l := range []Layout{Layout1, Layout2} {
			t.Run(fmt.Sprintf("%v/%v", auth, l), func(t *testing.T) {
				c, s := testCredential(t, auth, 1), testSealer(t, 1)
				for _, n := range []struct{ guards, resources, label int }{
					{0, 0, 0},
					{1, 0, 0},
					{0, 1, 0},
					{1, 1, 1},
					{2, 3, 2},
					{2, 3, 3},
					{2, 3, 6},
					{2, 3, 7},
					{40, 0, 0},
					{0, 41, 0},
					{0, 0, 2000},
					{10, 20, 300},
					{0, 0, 1 << 16},
					{0, 1 << 16, 0},
					{1 << 16, 0, 0},
				} {
					r := Request{l, 60, someGuards(n.guards), someResources(n.resources), strings.Repeat("x", n.label)}
					want := RequestSize(auth, l, n.guards, n.resources, n.label)
					d, err := c.AppendRequest(nil, s, &testHeader, &r)
					if want > MaxDatagram {
						if !errors.Is(err, ErrTooLarge) || d != nil {
							t.Errorf("%+v needs %d bytes: %v", n, want, err)
						}
						continue
					}
					if err != nil || len(d) != want {
						t.Errorf("%+v: %v, %d bytes, want %d", n, err, len(d), want)
					}
				}
				most := MaxObservations(auth, l)
				obs := make([]Observation, most+1)
				d, err := c.AppendReport(nil, s, &testHeader, l, obs[:most])
				if err != nil || len(d) > MaxDatagram || len(d) != reportSize(auth, l, most) {
					t.Errorf("%d observations: %v, %d bytes", most, err, len(d))
				}
				if d, err := c.AppendReport(nil, s, &testHeader, l, obs); !errors.Is(err, ErrTooLarge) || d != nil {
					t.Errorf("%d observations: %v", most+1, err)
				}
			})
		}
	}
	for _, n := range [][3]int{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {1 << 16, 0, 0}, {0, math.MaxInt, 0}, {0, 0, math.MaxInt}, {65535, 65535, 65535}} {
		if got := RequestSize(apikey.AuthAES, Layout1, n[0], n[1], n[2]); got <= MaxDatagram {
			t.Errorf("%v: %d", n, got)
		}
	}
}

// The largest of what the vectors' clients send is the largest that fits.
func TestMaximaOfOtherClients(t *testing.T) {
	for _, v := range vectors.Reports(t) {
		if !strings.HasPrefix(v.Case, "max/") {
			continue
		}
		c := credentialFor(t, v.Key)
		if got := MaxObservations(c.Auth(), Layout(v.Layout)); got != len(v.Observations) {
			t.Errorf("%s: %d, want %d", v.Case, got, len(v.Observations))
		}
	}
	for _, v := range vectors.Requests(t) {
		c := credentialFor(t, v.Key)
		size := RequestSize(c.Auth(), Layout(v.Layout), len(v.Guards), len(v.Resources), len(v.Label))
		if size != len(v.Datagram) {
			t.Errorf("%s: %d, want %d", v.Case, size, len(v.Datagram))
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	for _, auth := range modes {
		c := testCredential(t, auth, 1)
		r := Request{Layout2, 60, someGuards(2), someResources(2), "api"}
		bare, err := c.AppendRequest(nil, sealerAt([]byte("twelve bytes")), &testHeader, &r)
		if err != nil {
			t.Fatal(err)
		}
		// With no room, with just too little for the tag, and with plenty.
		for _, room := range []int{0, len(bare), BufferSize} {
			dst := append(make([]byte, 0, 6+room), "before"...)
			got, err := c.AppendRequest(dst, sealerAt([]byte("twelve bytes")), &testHeader, &r)
			if err != nil || string(got) != "before"+string(bare) {
				t.Errorf("%v, room %d: %v, %x", auth, room, err, got)
			}
			if room == BufferSize && &got[0] != &dst[0] {
				t.Errorf("%v: grew in spite of its room", auth)
			}
		}
	}
}

func TestWhatCannotBeBuilt(t *testing.T) {
	aes, none := testCredential(t, apikey.AuthAES, 1), testCredential(t, apikey.AuthNone, 1)
	s := testSealer(t, 1)
	good := Request{Layout2, 60, someGuards(1), someResources(1), "api"}
	with := func(change func(*Request)) *Request {
		r := good
		change(&r)
		return &r
	}
	var v RequestView
	if err := ParseRequest(craft(1, 1, guardBlock(1, 1, 2, 3, 4, 0), resourceBlock(9, 1000, 100, 1, 0)), &v); err != nil {
		t.Fatal(err)
	}
	answer := Answer{[]uint32{1}, []uint32{2}, []uint16{3}}
	dst := []byte("before")
	for _, c := range []struct {
		name string
		want error
		do   func() ([]byte, error)
	}{
		{"request without layout", ErrInvalid, func() ([]byte, error) {
			return none.AppendRequest(dst, nil, &testHeader, with(func(r *Request) { r.Layout = 0 }))
		}},
		{"request in layout 3", ErrInvalid, func() ([]byte, error) {
			return none.AppendRequest(dst, nil, &testHeader, with(func(r *Request) { r.Layout = 3 }))
		}},
		{"request without TTL", ErrInvalid, func() ([]byte, error) {
			return none.AppendRequest(dst, nil, &testHeader, with(func(r *Request) { r.DedupTTL = 0 }))
		}},
		{"request with too long a label", ErrTooLarge, func() ([]byte, error) {
			return none.AppendRequest(dst, nil, &testHeader, with(func(r *Request) { r.Label = strings.Repeat("x", 1200) }))
		}},
		{"request without sealer", ErrInvalid, func() ([]byte, error) { return aes.AppendRequest(dst, nil, &testHeader, &good) }},
		{"request with zero sealer", ErrInvalid, func() ([]byte, error) { return aes.AppendRequest(dst, &Sealer{}, &testHeader, &good) }},
		{"request without credential", ErrInvalid, func() ([]byte, error) { return (*Credential)(nil).AppendRequest(dst, s, &testHeader, &good) }},
		{"request with zero credential", ErrInvalid, func() ([]byte, error) { return (&Credential{}).AppendRequest(dst, s, &testHeader, &good) }},
		{"report without layout", ErrInvalid, func() ([]byte, error) { return none.AppendReport(dst, nil, &testHeader, 0, nil) }},
		{"report without sealer", ErrInvalid, func() ([]byte, error) { return aes.AppendReport(dst, nil, &testHeader, Layout2, nil) }},
		{"report too long", ErrTooLarge, func() ([]byte, error) {
			return none.AppendReport(dst, nil, &testHeader, Layout2, make([]Observation, 1<<16))
		}},
		{"response to a zero view", ErrInvalid, func() ([]byte, error) {
			return none.AppendResponse(dst, nil, &testHeader, &RequestView{}, &Answer{})
		}},
		{"response without sealer", ErrInvalid, func() ([]byte, error) { return aes.AppendResponse(dst, nil, &testHeader, &v, &answer) }},
		{"response without latencies", ErrInvalid, func() ([]byte, error) {
			return none.AppendResponse(dst, nil, &testHeader, &v, &Answer{nil, answer.Rates, answer.Deficits})
		}},
		{"response without rates", ErrInvalid, func() ([]byte, error) {
			return none.AppendResponse(dst, nil, &testHeader, &v, &Answer{answer.Latencies, nil, answer.Deficits})
		}},
		{"response with a deficit too many", ErrInvalid, func() ([]byte, error) {
			return none.AppendResponse(dst, nil, &testHeader, &v, &Answer{answer.Latencies, answer.Rates, []uint16{1, 2}})
		}},
	} {
		got, err := c.do()
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "wire: ") {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if string(got) != "before" {
			t.Errorf("%s: returns %q", c.name, got)
		}
	}
}

// A response to a view that no datagram of the credential's mode holds is refused, not cut.
func TestResponseTooLarge(t *testing.T) {
	pdu := craft(0, 40, make([]byte, 40*resourceSize)) // 1132 bytes: fits behind none's 44, not behind cookie's 76
	var v RequestView
	if err := ParseRequest(pdu, &v); err != nil {
		t.Fatal(err)
	}
	a := Answer{nil, make([]uint32, 40), make([]uint16, 40)}
	if _, err := testCredential(t, apikey.AuthNone, 1).AppendResponse(nil, nil, &testHeader, &v, &a); err != nil {
		t.Error(err)
	}
	if _, err := testCredential(t, apikey.AuthCookie, 1).AppendResponse(nil, nil, &testHeader, &v, &a); !errors.Is(err, ErrTooLarge) {
		t.Errorf("cookie: %v", err)
	}
}

// Every request of another client is answered in its layout and order, in no more bytes than it had.
func TestResponsesToOtherClients(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		t.Run(v.Case, func(t *testing.T) {
			c, s := credentialFor(t, v.Key), testSealer(t, 9)
			e, pdu, err := open(c, v.Datagram)
			if err != nil {
				t.Fatal(err)
			}
			var q RequestView
			if err := ParseRequest(pdu, &q); err != nil {
				t.Fatal(err)
			}
			var a Answer
			for i := range q.Guards() {
				a.Latencies = append(a.Latencies, 0xfffffff0+uint32(i%16))
			}
			for i := range q.Resources() {
				a.Rates = append(a.Rates, 0xffff0000+uint32(i))
				a.Deficits = append(a.Deficits, 0xff00+uint16(i))
			}
			h := Header{KeyID: 335544320000001, UniqueID: e.Header.UniqueID, Timestamp: 5, Steering: 1}
			d, err := c.AppendResponse(nil, s, &h, &q, &a)
			if err != nil || len(d) > len(v.Datagram) {
				t.Fatalf("%v, %d bytes answer %d", err, len(d), len(v.Datagram))
			}
			e, pdu, err = open(c, d)
			var got ResponseView
			if err == nil {
				err = ParseResponse(pdu, q.Layout, &got)
			}
			if err != nil || e.Header != h || got.Word() != 0 || len(got.Rest()) != 0 {
				t.Fatalf("%v, %+v, word %d, rest %x", err, e.Header, got.Word(), got.Rest())
			}
			if got.Guards() != q.Guards() || got.Resources() != q.Resources() {
				t.Fatalf("%d guards, %d resources", got.Guards(), got.Resources())
			}
			for i := range got.Guards() {
				want := q.Guard(i)
				want.Latency = a.Latencies[i]
				if got.Guard(i) != want {
					t.Errorf("guard %d: %+v, want %+v", i, got.Guard(i), want)
				}
			}
			for i := range got.Resources() {
				want := q.Resource(i)
				want.Rate, want.Tokens = a.Rates[i], a.Deficits[i]
				if got.Resource(i) != want {
					t.Errorf("resource %d: %+v, want %+v", i, got.Resource(i), want)
				}
			}
		})
	}
}

// asWeWrite reports whether a response vector is one that a server of ours could have sent: the
// others differ from that in a way that their name tells.
func asWeWrite(v *vectors.Response) bool {
	odd := []string{
		"tenant_padding_nonzero/", "tenant_tlv_44_bytes/", "pdu_reserved_nonzero/", "tlv_inside_pdu_after_blocks/",
		"resource_padding_nonzero/", "bytes_after_pdu/", "guard_threshold_rewritten_by_server/", "resources_swapped/",
		"flipped_",
	}
	return v.Accept && !slices.ContainsFunc(odd, func(p string) bool { return strings.HasPrefix(v.Case, p) })
}

// A response vector, its numbers read out and given to AppendResponse, comes out byte for byte.
func TestResponsesRebuild(t *testing.T) {
	rebuilt := 0
	for _, v := range vectors.Responses(t) {
		if !asWeWrite(&v) {
			continue
		}
		rebuilt++
		t.Run(v.Case, func(t *testing.T) {
			c := credentialFor(t, v.Key)
			_, pdu, err := open(c, v.Request)
			var q RequestView
			if err == nil {
				err = ParseRequest(pdu, &q)
			}
			if err != nil {
				t.Fatal(err)
			}
			e, pdu, err := open(c, v.Response)
			var r ResponseView
			if err == nil {
				err = ParseResponse(pdu, q.Layout, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
			var a Answer
			for i := range r.Guards() {
				a.Latencies = append(a.Latencies, r.Guard(i).Latency)
			}
			for i := range r.Resources() {
				a.Rates = append(a.Rates, r.Resource(i).Rate)
				a.Deficits = append(a.Deficits, r.Resource(i).Tokens)
			}
			got, err := c.AppendResponse(nil, sealerAt(e.Nonce()), &e.Header, &q, &a)
			if err != nil || !bytes.Equal(got, v.Response) {
				t.Errorf("%v\n%x, want\n%x", err, got, v.Response)
			}
		})
	}
	if rebuilt < 60 {
		t.Errorf("only %d responses were rebuilt", rebuilt)
	}
}

// Padding and latency that a request wrongly sets do not come back in the answer.
func TestResponseCleansPadding(t *testing.T) {
	var q RequestView
	pdu := craft(1, 1, guardBlock(1, 60000, 32, 3, 50, 77), resourceBlock(9, 1000, 100, 1, 0xbeef), label(8, 2, "ab"))
	if err := ParseRequest(pdu, &q); err != nil {
		t.Fatal(err)
	}
	c := testCredential(t, apikey.AuthNone, 1)
	d, err := c.AppendResponse(nil, nil, &testHeader, &q, &Answer{[]uint32{5}, []uint32{6}, []uint16{0}})
	if err != nil {
		t.Fatal(err)
	}
	want := craft(1, 1, guardBlock(1, 60000, 32, 3, 50, 5), resourceBlock(9, 1000, 6, 0, 0))
	copy(want, []byte{0x52, 0x52})
	copy(want[4:], []byte{0, 0, 0, 0})
	if !bytes.Equal(d[44:], want) {
		t.Errorf("%x, want\n%x", d[44:], want)
	}
}

// A request's key ID is the credential's, and its latencies are 0, whatever the caller left there.
func TestRequestWritesItsOwn(t *testing.T) {
	c := testCredential(t, apikey.AuthNone, 1)
	h := testHeader
	h.KeyID = 99
	gs := someGuards(1)
	gs[0].Latency = 42
	d, err := c.AppendRequest(nil, nil, &h, &Request{Layout2, 60, gs, nil, ""})
	if err != nil {
		t.Fatal(err)
	}
	e, pdu, err := open(c, d)
	var v RequestView
	if err == nil {
		err = ParseRequest(pdu, &v)
	}
	if err != nil || e.Header.KeyID != 7 || v.Guard(0).Latency != 0 || v.Guard(0).BufferSize != 0 {
		t.Errorf("%v, key %d, %+v", err, e.Header.KeyID, v.Guard(0))
	}
	d, err = c.AppendReport(nil, nil, &h, Layout1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, _, err = open(c, d); err != nil || e.Header.KeyID != 7 {
		t.Errorf("report: %v, key %d", err, e.Header.KeyID)
	}
}
