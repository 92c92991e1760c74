package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/wire"
)

// dissectorFor opens datagrams of one key, or of none.
func dissectorFor(t testing.TB, text string) *dissector {
	t.Helper()
	var key apikey.Key
	if text != "" {
		var err error
		if key, err = apikey.ParseAny(text); err != nil {
			t.Fatal(err)
		}
	}
	d, err := newDissector(key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDissectRequestVectors(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		r, err := dissectorFor(t, v.Key).datagram(v.Datagram)
		if err != nil {
			t.Errorf("%s: %v", v.Case, err)
			continue
		}
		checkEnvelope(t, r, "request", &v.Sent)
		if r.DedupTTL == nil || *r.DedupTTL != v.DedupTTL || len(r.Guards) != len(v.Guards) || len(r.Resources) != len(v.Resources) {
			t.Errorf("%s: dedup TTL %v, %d guards, %d resources; want %d, %d, %d", v.Case, r.DedupTTL, len(r.Guards), len(r.Resources), v.DedupTTL, len(v.Guards), len(v.Resources))
			continue
		}
		for i, want := range v.Guards {
			g := r.Guards[i]
			if g.TTL != want.TTL || g.MaxSamples != want.MaxSamples || g.MinSamples != want.MinSamples || g.Threshold != want.Threshold || g.Latency != 0 {
				t.Errorf("%s: guard %d is %+v, want %+v", v.Case, i, g, want)
			}
			if (g.BufferSize != nil) != (v.Layout == 1) || g.BufferSize != nil && *g.BufferSize != want.BufferSize {
				t.Errorf("%s: guard %d of layout %d shows a buffer size of %v, want %d", v.Case, i, v.Layout, g.BufferSize, want.BufferSize)
			}
		}
		for i, want := range v.Resources {
			b := r.Resources[i]
			if b.Limit == nil || b.Tokens == nil || b.Rate != nil || b.Deficit != nil || b.Window != want.Window || *b.Limit != want.Limit || *b.Tokens != want.Tokens {
				t.Errorf("%s: resource %d is %+v, want %+v", v.Case, i, b, want)
			}
		}
		if r.Label != safeText(v.Label) {
			t.Errorf("%s: label %q, want %q", v.Case, r.Label, v.Label)
		}
	}
}

func TestDissectReportVectors(t *testing.T) {
	for _, v := range vectors.Reports(t) {
		r, err := dissectorFor(t, v.Key).datagram(v.Datagram)
		if err != nil {
			t.Errorf("%s: %v", v.Case, err)
			continue
		}
		checkEnvelope(t, r, "report", &v.Sent)
		// Observations over the key's quota were left out by the client.
		for _, o := range r.Reports {
			if !slices.ContainsFunc(v.Observations, func(want vectors.Observation) bool {
				return want.Latency == o.Latency && want.TTL == o.TTL && want.MaxSamples == o.MaxSamples && want.MinSamples == o.MinSamples
			}) {
				t.Errorf("%s: report %+v was not made", v.Case, o)
			}
		}
		if len(r.Reports) == 0 || len(r.Reports) > len(v.Observations) {
			t.Errorf("%s: %d reports of %d", v.Case, len(r.Reports), len(v.Observations))
		}
	}
}

func checkEnvelope(t *testing.T, r *record, kind string, v *vectors.Sent) {
	t.Helper()
	key, err := apikey.ParseAny(v.Key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != kind || r.Auth != key.Auth().String() || r.KeyID != strconv.FormatUint(key.ID(), 10) || r.ServerID != "" ||
		r.UniqueID != hex.EncodeToString(v.Identity) || r.TimeStamp != v.Time || r.Steering != v.Steering || r.Mgmt != 0 ||
		r.Bytes != len(v.Datagram) || r.PDUBytes != len(v.PDU) || r.Nonce != hex.EncodeToString(v.Nonce) || r.Encrypted || r.Trailing != "" {
		t.Errorf("%s: %+v", v.Case, r)
	}
	if (r.Authentic == nil) != (key.Auth() == apikey.AuthNone) || r.Authentic != nil && !*r.Authentic {
		t.Errorf("%s: authentic %v", v.Case, r.Authentic)
	}
	if int(r.Layout) != v.Layout && r.LayoutFrom != layoutCoincide {
		t.Errorf("%s: layout %d by %s, want %d", v.Case, r.Layout, r.LayoutFrom, v.Layout)
	}
}

func TestDissectResponseVectors(t *testing.T) {
	accepted := 0
	for _, v := range vectors.Responses(t) {
		if !v.Accept {
			continue
		}
		accepted++
		r, err := dissectorFor(t, v.Key).datagram(v.Response)
		if err != nil {
			t.Errorf("%s: %v", v.Case, err)
			continue
		}
		if r.Kind != "response" || r.KeyID != "" || r.ServerID != strconv.FormatUint(v.Decision.Server, 10) || r.Granted == nil || *r.Granted != v.Decision.Granted || (r.Steering != 0) != v.Decision.KeepPort {
			t.Errorf("%s: %+v", v.Case, r)
		}
		if int(r.Layout) != v.Layout && r.LayoutFrom != layoutCoincide {
			t.Errorf("%s: layout %d by %s, want %d", v.Case, r.Layout, r.LayoutFrom, v.Layout)
		}
		for i, want := range v.Decision.Guards {
			if g := r.Guards[i]; g.Tracker != hex.EncodeToString(want.ID) || g.Latency != want.Latency || g.Threshold != want.Threshold {
				t.Errorf("%s: guard %d is %+v, want %+v", v.Case, i, g, want)
			}
		}
		for i, want := range v.Decision.Resources {
			b := r.Resources[i]
			if b.Bucket != hex.EncodeToString(want.ID) || b.Limit != nil || b.Tokens != nil || *b.Rate != want.Rate || *b.Deficit != want.Deficit {
				t.Errorf("%s: resource %d is %+v, want %+v", v.Case, i, b, want)
			}
		}
	}
	if accepted == 0 {
		t.Error("no response is accepted: this test compares nothing")
	}
}

// TestDissectShowsNoSecret dissects every datagram that carries a cookie.
func TestDissectShowsNoSecret(t *testing.T) {
	cookies := 0
	for _, v := range vectors.Requests(t) {
		key, err := apikey.ParseAny(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		if key.Auth() != apikey.AuthCookie {
			continue
		}
		cookies++
		secret := key.Secret()
		for _, with := range []string{"", v.Key} {
			std, out, errs := testIO(hex.EncodeToString(v.Datagram), nil)
			if err := dissectLines(std, dissectorFor(t, with)); err != nil {
				t.Errorf("%s: %v", v.Case, err)
			}
			if strings.Contains(out.String()+errs.String(), hex.EncodeToString(secret[:4])) {
				t.Errorf("%s shows its cookie: %s", v.Case, out)
			}
		}
	}
	if cookies == 0 {
		t.Error("there is no cookie: this test looks at nothing")
	}
}

func TestSafeText(t *testing.T) {
	for in, want := range map[string]string{
		"":              "",
		"api":           "api",
		"café ☕":        "café ☕",
		"\x1b[31m\x00":  `\x1b[31m\x00`,
		"\xff\xfe":      `\xff\xfe`,
		"a\nb\tc":       `a\nb\tc`,
		`\x1b`:          `\\x1b`,
		"\u202egnp.exe": `\u202egnp.exe`,
		"\u009b31m":     `\u009b31m`,
	} {
		if got := safeText([]byte(in)); got != want {
			t.Errorf("safeText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReadLine(t *testing.T) {
	const limit = 16
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{strings.Repeat("x", limit-1) + "\nb\n", []string{strings.Repeat("x", limit-1), "b"}},
		{strings.Repeat("x", limit) + "\nb\n", []string{strings.Repeat("x", limit), "b"}},
		{strings.Repeat("x", 5*limit) + "\nb", []string{strings.Repeat("x", limit), "b"}},
		{"b\n" + strings.Repeat("x", 5*limit), []string{"b", strings.Repeat("x", limit)}},
	} {
		r := bufio.NewReaderSize(strings.NewReader(c.in), limit)
		var got []string
		for {
			line, err := readLine(r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				t.Fatal(err)
			}
			got = append(got, string(bytes.TrimSpace(line)))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("lines of %q are %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDissectBrokenInput(t *testing.T) {
	broken := errors.New("the disk is gone")
	std, _, _ := testIO("", nil)
	std.in = failingReader{broken}
	if err := dissectLines(std, dissectorFor(t, "")); !errors.Is(err, broken) {
		t.Errorf("a broken input: error %v", err)
	}
}

// TestDissectCountsLines holds that every line is either shown or told about, in
// any mixture.
func TestDissectCountsLines(t *testing.T) {
	var good []string
	for _, v := range vectors.Requests(t) {
		good = append(good, hex.EncodeToString(v.Datagram))
	}
	d := dissectorFor(t, "")
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom(good),
			rapid.StringMatching(`[0-9a-fg]{1,90}`),
			rapid.SampledFrom([]string{"", " ", strings.Repeat("a", 2*maxLine)}),
		)).Draw(t, "lines")
		blank := 0
		for _, l := range lines {
			if strings.TrimSpace(l) == "" {
				blank++
			}
		}
		std, out, errs := testIO(strings.Join(lines, "\n"), nil)
		err := dissectLines(std, d)
		shown, told := strings.Count(out.String(), "\n"), strings.Count(errs.String(), "weir: line ")
		if shown+told+blank != len(lines) {
			t.Errorf("%d lines, %d blank: %d shown, %d told\n%s", len(lines), blank, shown, told, errs)
		}
		if (err != nil) != (told > 0) {
			t.Errorf("%d lines are malformed, and the error is %v", told, err)
		}
	})
}

func dissectTarget(tb testing.TB) *storm.Target {
	keys := []string{""}
	dissectors := []*dissector{dissectorFor(tb, "")}
	target := storm.New2("FuzzDissect", func(t testing.TB, b []byte, which uint8) {
		d := dissectors[int(which)%len(dissectors)]
		r, err := d.datagram(b)
		if r == nil && err == nil || r != nil && err != nil && !r.Encrypted {
			t.Fatalf("%x: record %+v, error %v", b, r, err)
		}
		if r == nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%x: error %v", b, err)
			}
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		for _, c := range text {
			if c < 0x20 || c == 0x7f {
				t.Fatalf("%x: a control character in %s", b, text)
			}
		}
	})
	target.Aim(storm.Datagram)
	add := func(datagram vectors.Hex, key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
			dissectors = append(dissectors, dissectorFor(tb, key))
		}
		target.Add([]byte(datagram), uint8(slices.Index(keys, key)))
	}
	for _, v := range vectors.Requests(tb) {
		add(v.Datagram, v.Key)
		add(v.Datagram, "")
	}
	for _, v := range vectors.Reports(tb) {
		add(v.Datagram, v.Key)
	}
	for _, v := range vectors.Responses(tb) {
		add(v.Response, v.Key)
	}
	return target
}

func FuzzDissect(f *testing.F)      { dissectTarget(f).Fuzz(f) }
func TestStormDissect(t *testing.T) { dissectTarget(t).Storm(t) }
