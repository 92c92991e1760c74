package core

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// coreFor makes a core that asks as a vector's client did.
func coreFor(t *testing.T, key string, layout int, dedupTTL uint32, entropy io.Reader) *Core {
	t.Helper()
	k, err := apikey.ParseAny(key)
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Policy{Unit: time.Duration(dedupTTL) * time.Millisecond, Gap: policy.Fixed(1), Preference: policy.Fixed(1)}
	c, err := New(Config{Key: k, Layout: wire.Layout(layout), Policy: p, Entropy: entropy})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requestOf builds the question that a vector's inputs describe.
func requestOf(layout int, guards []vectors.Guard, resources []vectors.Resource, label []byte) *Request {
	r := &Request{Label: string(label)}
	for _, g := range guards {
		id := ident.Tracker(string(g.Tracker), g.TTL, g.MaxSamples, g.MinSamples)
		if layout == 1 {
			id = ident.TrackerLayout1(string(g.Tracker), g.TTL, g.MaxSamples, g.BufferSize, g.MinSamples)
		}
		r.Guards = append(r.Guards, wire.Guard{
			Tracker: id, TTL: g.TTL, MaxSamples: g.MaxSamples, BufferSize: g.BufferSize, MinSamples: g.MinSamples, Threshold: g.Threshold,
		})
	}
	for _, s := range resources {
		r.Resources = append(r.Resources, wire.Resource{
			Bucket: ident.Bucket(string(s.Bucket), s.Window, s.Limit), Window: s.Window, Rate: s.Limit, Tokens: s.Tokens,
		})
	}
	return r
}

// rename gives a request in flight the identity that a vector's request had.
func rename(c *Core, id RequestID, uid wire.UniqueID) {
	f := c.flights.find(id)
	c.table.remove(f)
	f.uid = uid
	c.table.put(f)
}

// refusals says how the core refuses what it must, by the vector's case.
var refusals = map[string]DatagramVerdict{
	"count_empty": DatagramMismatch, "count_short": DatagramMismatch,
	"count_extra": DatagramMismatch, "count_extra_denied": DatagramMismatch,
	"foreign_bucket_id": DatagramMismatch,
	"auth_none_instead": DatagramMode, "auth_aes_instead": DatagramMode,
	"auth_cookie_wrong_value": DatagramForged, "bad_tag": DatagramForged, "bad_nonce": DatagramForged,
	"flipped_ciphertext_or_pdu_byte_last": DatagramForged, "flipped_steering_bit": DatagramForged,
	"flipped_timestamp": DatagramForged, "flipped_server_id": DatagramForged,
	"wrong_server_id": DatagramStranger, "server_id_zero": DatagramStranger, "server_id_is_key_id": DatagramStranger,
	"wrong_unique_id":  DatagramUnknown,
	"pdu_type_request": DatagramNotAnswer, "pdu_type_report": DatagramNotAnswer,
	"cut_last_byte": DatagramMalformed, "cut_last_resource": DatagramMalformed,
	"cut_0": DatagramMalformed, "cut_11": DatagramMalformed, "cut_27": DatagramMalformed,
	"cut_39": DatagramMalformed, "cut_40": DatagramMalformed, "cut_43": DatagramMalformed,
	"tenant_type_wrong": DatagramMalformed,
	"pdu_size_plus_4":   DatagramMalformed, "pdu_size_minus_4": DatagramMalformed, "pdu_size_8": DatagramMalformed,
	"other_guard_layout": DatagramMalformed,
}

func TestResponseVectors(t *testing.T) {
	all := vectors.Responses(t)
	if len(all) != 181 {
		t.Errorf("%d responses, want 181", len(all))
	}
	for _, v := range all {
		t.Run(v.Case, func(t *testing.T) {
			c := coreFor(t, v.Key, v.Layout, 60, seeded(1))
			var servers []Server
			for i, id := range v.Members {
				servers = append(servers, Server{ident.ServerID(id), []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 1)}})
			}
			if err := c.SetMembership(at(0), servers); err != nil {
				t.Fatal(err)
			}
			request := requestOf(v.Layout, v.Guards, v.Resources, nil)
			id, err := c.Submit(at(0), request)
			if err != nil {
				t.Fatal(err)
			}
			rename(c, id, wire.UniqueID(v.Request[12:28]))
			before := bytes.Clone(v.Response)
			verdict := c.HandleDatagram(at(ms(1)), 1, v.Response)
			if !bytes.Equal(before, v.Response) {
				t.Error("the datagram was changed")
			}
			if !v.Accept {
				c.expectRefusal(t, v, verdict, id)
				return
			}
			if verdict != DatagramCounted {
				t.Fatalf("verdict %v, want it counted", verdict)
			}
			checkDecision(t, c, request, &v.Decision)
		})
	}
}

// expectRefusal checks that a response was refused for the right reason and left
// the request as it was.
func (c *Core) expectRefusal(t *testing.T, v vectors.Response, got DatagramVerdict, id RequestID) {
	t.Helper()
	name, rest, _ := strings.Cut(v.Case, "/")
	want, ok := refusals[name]
	if !ok {
		t.Fatalf("no verdict is written down for %q (%s)", name, v.Reason)
	}
	switch {
	case strings.HasSuffix(rest, "aes") && (name == "cut_last_byte" || name == "cut_last_resource"):
		want = DatagramForged // what is cut off a ciphertext shows as damage
	case strings.HasSuffix(rest, "none") && name == "auth_cookie_wrong_value":
		want = DatagramMode // any cookie is wrong for a key without
	}
	if got != want {
		t.Errorf("%s: verdict %v, want %v", v.Reason, got, want)
	}
	if f := c.flights.find(id); f.phase != waiting || f.answered != 0 {
		t.Error("the request was touched")
	}
	for _, ev := range drainEvents(c) {
		if ev.Kind == EventCompleted {
			t.Errorf("the request was completed: %+v", ev.Completion)
		}
	}
}

// checkDecision compares the completion, whose blocks are in the request's
// order, with the vector's, in the response's.
func checkDecision(t *testing.T, c *Core, r *Request, want *vectors.Decision) {
	t.Helper()
	var got *Completion
	for _, ev := range drainEvents(c) {
		if ev.Kind == EventCompleted {
			got = &ev.Completion
		}
	}
	if got == nil {
		t.Fatal("no completion")
	}
	if granted := got.Outcome == Granted; granted != want.Granted || got.Server != ident.ServerID(want.Server) || got.KeepPort != want.KeepPort {
		t.Errorf("%v by %v, keep port %v; want granted %v by %v, keep port %v",
			got.Outcome, got.Server, got.KeepPort, want.Granted, want.Server, want.KeepPort)
	}
	if len(got.Guards) != len(want.Guards) || len(got.Resources) != len(want.Resources) {
		t.Fatalf("%d guards and %d resources, want %d and %d", len(got.Guards), len(got.Resources), len(want.Guards), len(want.Resources))
	}
	for _, w := range want.Guards {
		for i := range r.Guards {
			if bytes.Equal(r.Guards[i].Tracker[:], w.ID) && got.Guards[i] != (GuardResult{w.Latency, w.Passed}) {
				t.Errorf("guard %d: %+v, want %+v", i, got.Guards[i], w)
			}
		}
	}
	for _, w := range want.Resources {
		for i := range r.Resources {
			if bytes.Equal(r.Resources[i].Bucket[:], w.ID) && got.Resources[i] != (ResourceResult{w.Rate, w.Deficit}) {
				t.Errorf("resource %d: %+v, want %+v", i, got.Resources[i], w)
			}
		}
	}
}

// script gives the bytes of a New, and then those that are written down.
func script(then ...byte) io.Reader {
	return io.MultiReader(io.LimitReader(seeded(9), 24), bytes.NewReader(then))
}

// TestRequestVectors sees the core send, byte for byte, what other clients sent
// for the same question at the same time under the same identity. In AES mode
// the nonce is drawn before, so that only the clear header can be compared.
func TestRequestVectors(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		if v.OwnTrackerIDs() && len(v.Guards) > 0 {
			continue
		}
		t.Run(v.Case, func(t *testing.T) {
			c := coreFor(t, v.Key, v.Layout, v.DedupTTL, script(v.Identity...))
			if err := c.SetMembership(at(0), testServers(1)); err != nil {
				t.Fatal(err)
			}
			now := Time{Mono: time.Second, Wall: int64(v.Time)}
			if _, err := c.Submit(now, requestOf(v.Layout, v.Guards, v.Resources, v.Label)); err != nil {
				t.Fatal(err)
			}
			sends := drainSends(c, now)
			if len(sends) != 1 {
				t.Fatalf("%d sends", len(sends))
			}
			got, want := sends[0].Payload, bytes.Clone(v.Datagram)
			want[36] = 0                        // some clients set the steering flag, which means nothing here
			want[12+6] = want[12+6]&0x0f | 0x40 // and some do not shape the identity like a UUID
			want[12+8] = want[12+8]&0x3f | 0x80
			if len(got) != len(want) {
				t.Fatalf("%d bytes, want %d", len(got), len(want))
			}
			if v.Nonce != nil {
				got, want = got[:40], want[:40]
			}
			if !bytes.Equal(got, want) {
				t.Errorf("sent\n%x, want\n%x", got, want)
			}
			if stamp := binary.LittleEndian.Uint64(got[28:]); stamp != v.Time {
				t.Errorf("time stamp %d, want the wall clock's %d", stamp, v.Time)
			}
		})
	}
}
