package runner

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/wire"
)

// Where things are in a datagram of mode none.
const (
	atKeyID    = 4
	atTime     = 28
	atMgmt     = 37
	atPadding  = 38
	atAuth     = 40
	atPDU      = 44
	atSize     = atPDU + 2
	atWord     = atPDU + 4
	atGuard    = atPDU + 12
	atResource = atGuard + 36
	atLabel    = atResource + 28
)

func testInspector(t *testing.T, auth apikey.Auth) *inspector {
	t.Helper()
	key, err := keyFor(auth, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScribe(frame("test/test", "", "", usual), key, rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	return &inspector{scribe: s, layout: wire.Layout2, dedup: 600}
}

var question = &conformance.Submit{
	ID:        "r",
	Guards:    []conformance.Guard{{Tracker: "inventory", TTL: 10_000, MaxSamples: 100, MinSamples: 5, Threshold: 100}},
	Resources: []conformance.Resource{{Bucket: "checkout", Window: 1000, Limit: 100, Tokens: 1}},
}

func (in *inspector) sealed(t *testing.T) []byte {
	t.Helper()
	b, err := in.scribe.good.AppendRequest(nil, in.scribe.sealer, &wire.Header{Timestamp: uint64(time.Now().UnixMilli())}, &wire.Request{
		Layout: wire.Layout2, DedupTTL: 600, Label: "label",
		Guards: []wire.Guard{encodeGuard(&question.Guards[0], 2)}, Resources: []wire.Resource{encodeResource(&question.Resources[0])},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestInspector changes a good datagram in one place each, and sees the rule named.
func TestInspector(t *testing.T) {
	set := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b[at] = v
			return b
		}
	}
	tlv := func(b ...byte) func([]byte) []byte { // one more behind the label
		return func(d []byte) []byte {
			d = append(d, b...)
			binary.LittleEndian.PutUint16(d[atSize:], uint16(len(d)-atPDU))
			return d
		}
	}
	for name, tt := range map[string]struct {
		change func([]byte) []byte
		rule   string // "" for none
	}{
		"nothing":          {func(b []byte) []byte { return b }, ""},
		"steering is free": {set(36, 1), ""},
		"key ID":           {set(atKeyID, 9), "key-id"},
		"seconds":          {func(b []byte) []byte { binary.LittleEndian.PutUint64(b[atTime:], uint64(time.Now().Unix())); return b }, "timestamp"},
		"an hour ahead": {func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[atTime:], uint64(time.Now().UnixMilli()+3_600_000))
			return b
		}, "timestamp"},
		"mgmt flag":          {set(atMgmt, 1), "format"},
		"header padding":     {set(atPadding+1, 1), "format"},
		"longer header":      {func(b []byte) []byte { b[2] = 44; return slices.Insert(b, 40, 0, 0, 0, 0) }, "format"},
		"cookie in the none": {otherMode, "authentication"},
		"unknown auth":       {set(atAuth, 0), "format"},
		"a response":         {set(atPDU+1, 0x52), "format"},
		"size of the PDU":    {set(atSize, 7), "format"},
		"trailing bytes":     {func(b []byte) []byte { return append(b, 0) }, "format"},
		"dedup TTL":          {set(atWord, 1), "dedup-ttl"},
		"current latency":    {set(atGuard+32, 1), "format"},
		"resource padding":   {set(atResource+26, 1), "format"},
		"unknown TLV":        {tlv(0x11, 0x11, 4, 0), "label"},
		"a second label":     {tlv(0x4d, 0x4c, 8, 0, 1, 0, 'x', 0), "label"},
		"label not padded":   {set(atLabel+11, 1), "label"},
		"another bucket":     {set(atResource, 0), "blocks"},
		"more tokens":        {set(atResource+24, 2), "blocks"},
		"another threshold":  {set(atGuard+28, 99), "blocks"},
		"too long":           {func(b []byte) []byte { return append(b, make([]byte, 1200)...) }, "format"},
		"too short":          {func(b []byte) []byte { return b[:39] }, "format"},
	} {
		t.Run(name, func(t *testing.T) {
			in := testInspector(t, apikey.AuthNone)
			b := in.sealed(t)
			if tt.rule != "" { // or the place would not be where it is said to be
				if d := in.open(&packet{server: "A", at: time.Now(), data: slices.Clone(b)}); d == nil || len(in.found) > 0 {
					t.Fatal(in.found)
				}
			}
			if d := in.open(&packet{server: "A", at: time.Now(), data: tt.change(b)}); d != nil {
				in.checkAsked(d, question)
			}
			if tt.rule == "" && len(in.found) > 0 || tt.rule != "" && !slices.ContainsFunc(in.found, func(f Finding) bool { return f.Rule == tt.rule }) {
				t.Errorf("%q: %v", tt.rule, in.found)
			}
		})
	}
}

// TestInspectorKeys opens nothing that another key has sealed.
func TestInspectorKeys(t *testing.T) {
	for _, auth := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
		in := testInspector(t, auth)
		in.scribe.good, in.scribe.other = in.scribe.other, in.scribe.good
		b := in.sealed(t)
		in.scribe.good = in.scribe.other
		if d := in.open(&packet{server: "A", at: time.Now(), data: b}); d != nil || len(in.found) != 1 || in.found[0].Rule != "authentication" {
			t.Errorf("%v: %v", auth, in.found)
		}
	}
}

// TestNonces: two requests never share one, whatever their bytes; a replay does.
func TestNonces(t *testing.T) {
	in := testInspector(t, apikey.AuthAES)
	p := &play{trace: in.scribe.trace, in: *in, nonces: map[string]wire.UniqueID{}}
	b := in.sealed(t)
	a := &asked{submit: question}
	d := p.in.open(&packet{server: "A", at: time.Now(), data: b})
	p.checkNonce(d, a)
	p.checkNonce(d, a)
	if len(p.in.found) > 0 {
		t.Fatal(p.in.found)
	}
	d.envelope.Header.UniqueID[0]++
	p.checkNonce(d, a)
	if len(p.in.found) != 1 || p.in.found[0].Rule != "nonce" {
		t.Error(p.in.found)
	}
}

// TestResults holds the numbers that a client tells to those of the answer.
func TestResults(t *testing.T) {
	by := &conformance.Answer{From: "A", Of: "r", Latency: 99, Deficit: 3, Counts: "counted"}
	tr := frame("test/test", "", "", usual)
	tr.Events = []conformance.Event{{Submit: question}, {Answer: by}}
	for name, tt := range map[string]struct {
		reply conformance.Reply
		wrong int
	}{
		"none told": {conformance.Reply{}, 0},
		"right":     {conformance.Reply{Guards: []conformance.GuardResult{{Latency: 99, Passed: true}}, Resources: []conformance.ResourceResult{{Deficit: 3}}}, 0},
		"latency":   {conformance.Reply{Guards: []conformance.GuardResult{{Latency: 98, Passed: true}}}, 1},
		"passed":    {conformance.Reply{Guards: []conformance.GuardResult{{Latency: 99}}}, 1},
		"deficit":   {conformance.Reply{Resources: []conformance.ResourceResult{{}}}, 1},
		"too many":  {conformance.Reply{Guards: []conformance.GuardResult{{Latency: 99, Passed: true}, {Latency: 99, Passed: true}}}, 1},
	} {
		p := &play{trace: tr}
		p.judgeResults(&asked{submit: question}, &conformance.Decide{Request: "r", By: "A"}, &tt.reply)
		if len(p.in.found) != tt.wrong {
			t.Errorf("%s: %v", name, p.in.found)
		}
	}
}

// TestJudgeChange: the next free port of the range, wrapping, and no other.
func TestJudgeChange(t *testing.T) {
	for _, tt := range []struct {
		old, now uint16
		ok       bool
	}{
		{40000, 49152, true},
		{40000, 49160, true}, // others hold what is between
		{40000, 40001, false},
		{49152, 49153, true},
		{49152, 49152, false},
		{50000, 49999, false},
		{50000, 60000, false},
		{65535, 49152, true},
		{65534, 65535, true},
		{65530, 49155, true},
	} {
		p := &play{}
		p.judgeChange(tt.old, tt.now, "r")
		if (len(p.in.found) == 0) != tt.ok {
			t.Errorf("%d to %d: %v", tt.old, tt.now, p.in.found)
		}
	}
}
