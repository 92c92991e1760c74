package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"pgregory.net/rapid"
)

func nonceOf(t *testing.T, s *Sealer) string {
	t.Helper()
	n, err := s.next()
	if err != nil {
		t.Fatal(err)
	}
	return string(n[:])
}

func TestSealerCounts(t *testing.T) {
	s, err := NewSealer(strings.NewReader("PREFIX-1PREFIX-2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PREFIX-1\x00\x00\x00\x00", "PREFIX-1\x01\x00\x00\x00", "PREFIX-1\x02\x00\x00\x00"} {
		if got := nonceOf(t, s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSealerRedrawsAtTheWrap(t *testing.T) {
	s, err := NewSealer(strings.NewReader("PREFIX-1PREFIX-2"))
	if err != nil {
		t.Fatal(err)
	}
	s.used = noncesPerDraw - 2
	for _, want := range []string{
		"PREFIX-1\xfe\xff\xff\xff", "PREFIX-1\xff\xff\xff\xff",
		"PREFIX-2\x00\x00\x00\x00", "PREFIX-2\x01\x00\x00\x00",
	} {
		if got := nonceOf(t, s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s.used != 2 {
		t.Errorf("counts on from %d, so that the next wrap would be missed", s.used)
	}
}

// A sealer whose source fails at the wrap seals nothing more, until the source recovers.
func TestSealerWithoutEntropy(t *testing.T) {
	for name, source := range map[string]io.Reader{
		"none": nil, "empty": strings.NewReader(""), "short": strings.NewReader("7 bytes"),
	} {
		if s, err := NewSealer(source); !errors.Is(err, ErrEntropy) || s != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	var source bytes.Buffer
	source.WriteString("PREFIX-1")
	s, err := NewSealer(&source)
	if err != nil {
		t.Fatal(err)
	}
	s.used = noncesPerDraw
	c := testCredential(t, apikey.AuthAES, 1)
	for range 2 {
		if _, err := c.AppendReport(nil, s, &testHeader, Layout2, nil); !errors.Is(err, ErrEntropy) || !errors.Is(err, io.EOF) {
			t.Errorf("the source is empty: %v", err)
		}
	}
	source.WriteString("PREFIX-1")
	if _, err := s.next(); !errors.Is(err, ErrEntropy) {
		t.Errorf("the source repeats itself: %v", err)
	}
	source.WriteString("PREFIX-2")
	if got := nonceOf(t, s); got != "PREFIX-2\x00\x00\x00\x00" {
		t.Errorf("%q", got)
	}
}

func TestCopiedSealerSealsNothing(t *testing.T) {
	s := testSealer(t, 1)
	copied := Sealer{self: s.self, entropy: s.entropy, used: s.used, prefix: s.prefix} // what *s would be
	c := testCredential(t, apikey.AuthAES, 1)
	if d, err := c.AppendReport(nil, &copied, &testHeader, Layout2, nil); !errors.Is(err, ErrInvalid) || d != nil {
		t.Errorf("%v, %x", err, d)
	}
	if _, err := c.AppendReport(nil, s, &testHeader, Layout2, nil); err != nil {
		t.Errorf("the original: %v", err)
	}
}

func TestVetReportsACopy(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command here to run vet with")
	}
	out, err := exec.CommandContext(t.Context(), goTool, "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "wire.Sealer contains") {
		t.Errorf("vet did not report the copy: %v\n%s", err, out)
	}
}

// A refused datagram costs no nonce, and no two datagrams share one.
func TestNoNonceTwice(t *testing.T) {
	c := testCredential(t, apikey.AuthAES, 1)
	var view RequestView
	if err := ParseRequest(craft(0, 0), &view); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		// Each sealer draws from a part of one source, as workers of one process do.
		source := &counting{rapid.Byte().Draw(t, "source")}
		var sealers []*Sealer
		for range rapid.IntRange(1, 4).Draw(t, "sealers") {
			s, err := NewSealer(source)
			if err != nil {
				t.Fatal(err)
			}
			s.used = noncesPerDraw - uint64(rapid.IntRange(0, 6).Draw(t, "before the wrap"))
			sealers = append(sealers, s)
		}
		seen := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "seals") {
			s := rapid.SampledFrom(sealers).Draw(t, "sealer")
			var d []byte
			var err error
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				d, err = c.AppendRequest(nil, s, &testHeader, &Request{Layout: Layout2, DedupTTL: 60})
			case 1:
				d, err = c.AppendReport(nil, s, &testHeader, Layout1, nil)
			case 2:
				d, err = c.AppendResponse(nil, s, &testHeader, &view, &Answer{})
			case 3:
				before := s.used
				if _, err := c.AppendRequest(nil, s, &testHeader, &Request{Layout: Layout2, DedupTTL: 60, Resources: make([]Resource, 50)}); !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
				if s.used != before {
					t.Fatal("a refused request used a nonce up")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var e Envelope
			if err := ParseEnvelope(d, &e); err != nil {
				t.Fatal(err)
			}
			if seen[string(e.Nonce())] {
				t.Fatalf("nonce %x twice", e.Nonce())
			}
			seen[string(e.Nonce())] = true
		}
	})
}

// The counter is the nonce's last four bytes, so that any nonce can be set for a known answer.
func TestSealerAtAnyNonce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), nonceSize, nonceSize).Draw(t, "nonce")
		s := sealerAt(want)
		got, err := s.next()
		if err != nil || !bytes.Equal(got[:], want) {
			t.Fatalf("%v, %x, want %x", err, got, want)
		}
		if n := binary.LittleEndian.Uint32(want[8:]); s.used != uint64(n)+1 {
			t.Fatalf("counter %d after %d", s.used, n)
		}
	})
}
