package ident_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2s"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/ident"
)

func TestBucketKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name          string
		window, limit uint32
		want          string
	}{
		{"checkout", 1000, 100, "f5cf3ad8b8406854b596ba3614f16eff"},
		{"café", 60000, 25, "732b120606917c683e37433fa00a60dc"},
		{"binary\x00bucket", 1<<32 - 1, 1<<32 - 1, "f57a48f69aa8c7a16fc73499ae8d07fa"},
	} {
		if got := ident.Bucket(c.name, c.window, c.limit).String(); got != c.want {
			t.Errorf("Bucket(%q, %d, %d) = %s, want %s", c.name, c.window, c.limit, got, c.want)
		}
	}
}

// TestPreimage recomputes IDs from a preimage that is put together another way,
// for names on both sides of the scratch buffer's size.
func TestPreimage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "name"))
		f := rapid.SliceOfN(rapid.Uint32(), 4, 4).Draw(t, "fields")
		for _, c := range []struct {
			domain string
			fields []uint32
			got    ident.ID
		}{
			{"ratelimitly.resource.v1", f[:2], ident.Bucket(name, f[0], f[1])},
			{"ratelimitly.latency-tracker.v2", f[:3], ident.Tracker(name, f[0], f[1], f[2])},
			{"ratelimitly.latency-tracker.v1", f, ident.TrackerLayout1(name, f[0], f[1], f[2], f[3])},
		} {
			hash, err := blake2s.New256(nil)
			if err != nil {
				t.Fatal(err)
			}
			hash.Write([]byte(c.domain + "\x00"))
			for _, part := range []any{uint32(len(name)), []byte(name), c.fields} {
				if err := binary.Write(hash, binary.LittleEndian, part); err != nil {
					t.Fatal(err)
				}
			}
			if want := ident.ID(hash.Sum(nil)[:16]); c.got != want {
				t.Errorf("%s: got %v, want %v", c.domain, c.got, want)
			}
		}
	})
}

func TestIDText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ident.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		text := id.String()
		for _, s := range []string{text, strings.ToUpper(text)} {
			if back, err := ident.ParseID(s); err != nil || back != id {
				t.Errorf("ParseID(%q) = %v, %v; want %v", s, back, err, id)
			}
		}
		if id.IsZero() != (text == strings.Repeat("0", 32)) {
			t.Errorf("IsZero() of %s = %v", text, id.IsZero())
		}
	})
	for _, bad := range []string{"", "f5cf", strings.Repeat("g", 32), strings.Repeat("0", 31), strings.Repeat("0", 33), " " + strings.Repeat("0", 31)} {
		if id, err := ident.ParseID(bad); err == nil || !id.IsZero() {
			t.Errorf("ParseID(%q) = %v, %v; want an error and no ID", bad, id, err)
		}
	}
	if !(ident.ID{}).IsZero() {
		t.Error("the zero ID is not zero")
	}
}

func TestOrdinaryNamesAllocateNothing(t *testing.T) {
	for _, name := range []string{"", "checkout", strings.Repeat("n", 205)} {
		var id ident.ID
		allocs := testing.AllocsPerRun(100, func() {
			id = ident.Bucket(name, 1000, 100)
			id = ident.Tracker(name, 10000, 100, 5)
			id = ident.TrackerLayout1(name, 10000, 100, 32, 5)
		})
		if allocs != 0 {
			t.Errorf("a name of %d bytes: %v allocations, want 0", len(name), allocs)
		}
		if id.IsZero() {
			t.Error("an ID is zero")
		}
	}
}

func BenchmarkBucket(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ident.Bucket("checkout", 1000, 100)
	}
}

func BenchmarkTracker(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ident.Tracker("inventory", 10000, 100, 5)
	}
}
