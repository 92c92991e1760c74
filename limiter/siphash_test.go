package limiter

import (
	"bufio"
	"encoding/binary"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestSipHash checks the hash against the vectors that its authors published for SipHash-2-4: key
// 00 01 … 0f, and messages 00 01 … of every length up to 63.
func TestSipHash(t *testing.T) {
	f, err := os.Open("testdata/siphash24.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var key [16]byte
	for i := range key {
		key[i] = byte(i)
	}
	h := newHasher(key)
	var message []byte
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text()[0] == '#' {
			continue
		}
		want, err := strconv.ParseUint(lines.Text(), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.sum(message); got != want {
			t.Errorf("%d bytes: %016x, want %016x", len(message), got, want)
		}
		message = append(message, byte(len(message)))
	}
	if len(message) != 64 {
		t.Fatalf("%d vectors, want 64", len(message))
	}
}

func TestSipHashWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hasher{rapid.Uint64().Draw(t, "k0"), rapid.Uint64().Draw(t, "k1")}
		var b [24]byte
		var w [3]uint64
		for i := range w {
			w[i] = rapid.Uint64().Draw(t, "word")
			binary.LittleEndian.PutUint64(b[8*i:], w[i])
		}
		if h.sum3(w[0], w[1], w[2]) != h.sum(b[:]) {
			t.Fatal("three words and their bytes have different hashes")
		}
		if d := h.derive(1); d == h || d == h.derive(2) {
			t.Fatal("derived keys are not all different")
		}
	})
}

func BenchmarkSipHash(b *testing.B) {
	h := hasher{1, 2}
	var sink uint64
	for _, n := range []int{24, 64, 200, 1100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			message := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				sink += h.sum(message)
			}
		})
	}
	b.Run("words", func(b *testing.B) {
		for b.Loop() {
			sink = h.sum3(sink, 2, 3)
		}
	})
}
