package server

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/limiter"
)

func TestSafeLabel(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"empty", "", ""},
		{"plain", "api/v1 checkout", "api/v1 checkout"},
		{"not ASCII", "café 日本", "café 日本"},
		{"quotes and backslash stay", `a"b\c`, `a"b\c`},
		{"control bytes", "a\nb\x00c\x7f", `a\x0ab\x00c\x7f`},
		{"C1 control", "a\u0085b", `a\xc2\x85b`},
		{"invalid UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"overlong", "\xc0\xaf", `\xc0\xaf`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"a real replacement character", "\ufffd", "\ufffd"},
		{"text that turns", "a\u202eb", `a\xe2\x80\xaeb`},
		{"text that hides", "a\u200bb", `a\xe2\x80\x8bb`},
		{"exactly 64", strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{"65", strings.Repeat("x", 65), strings.Repeat("x", 64)},
		{"a character does not fit", strings.Repeat("x", 63) + "é", strings.Repeat("x", 63)},
		{"an escape does not fit", strings.Repeat("x", 61) + "\n", strings.Repeat("x", 61)},
		{"an escape just fits", strings.Repeat("x", 60) + "\n" + "y", strings.Repeat("x", 60) + `\x0a`},
		{"three escapes that belong together do not fit", strings.Repeat("x", 56) + "\u202ey", strings.Repeat("x", 56)},
		{"nothing after what does not fit", strings.Repeat("x", 61) + "\ny", strings.Repeat("x", 61)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(appendSafeLabel(nil, []byte(c.raw))); got != c.want {
				t.Errorf("appendSafeLabel(%q) = %q, want %q", c.raw, got, c.want)
			}
		})
	}
}

func TestSafeLabelIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "raw")
		got := appendSafeLabel([]byte("before"), raw)[len("before"):]
		if len(got) > maxLabel {
			t.Fatalf("%d bytes", len(got))
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range string(got) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q does not print", got)
			}
		}
		if again := appendSafeLabel(nil, got); !bytes.Equal(again, got) {
			t.Fatalf("%q made safe again is %q", got, again)
		}
	})
}

// labelCounts returns the table's counts of one verdict by label, where not 0.
func labelCounts(t *labelTable, v limiter.Verdict) map[string]uint64 {
	m := make(map[string]uint64)
	for _, row := range t.snapshot() {
		if n := row.counts[v].Load(); n > 0 {
			m[row.label] += n
		}
	}
	return m
}

func TestLabelQuota(t *testing.T) {
	var table labelTable
	table.setQuota(2)
	for _, l := range []string{"a", "b", "c", "a", "d", "overflow", ""} {
		table.count([]byte(l), limiter.Granted)
	}
	got := labelCounts(&table, limiter.Granted)
	if got["a"] != 2 || got["b"] != 1 || got["overflow"] != 3 || len(got) != 3 {
		t.Errorf("counts are %v, want a:2 b:1 overflow:3", got)
	}
	if n := labelCounts(&table, limiter.Rejected); len(n) != 0 {
		t.Errorf("rejections are %v, want none", n)
	}

	table.setQuota(1) // lowered: b stays, and nothing is let in
	table.count([]byte("b"), limiter.Granted)
	table.count([]byte("c"), limiter.Granted)
	got = labelCounts(&table, limiter.Granted)
	if got["b"] != 2 || got["overflow"] != 4 {
		t.Errorf("counts are %v, want b:2 overflow:4", got)
	}
}

// Of two workers that meet the last room at once, the second finds it taken.
func TestLabelRoomIsTakenMeanwhile(t *testing.T) {
	var table labelTable
	table.setQuota(1)
	table.add("a")
	if c := table.add("b"); c != &table.overflow || len(table.snapshot()) != 2 {
		t.Errorf("there are %d labels in a room for one", len(table.snapshot())-1)
	}
}

// The literal label overflow uses no quota, so that it cannot take the place of one
// that could be told apart.
func TestLabelOverflowUsesNoQuota(t *testing.T) {
	var table labelTable
	table.setQuota(1)
	table.count([]byte("overflow"), limiter.Granted)
	table.count([]byte("a"), limiter.Granted)
	got := labelCounts(&table, limiter.Granted)
	if got["overflow"] != 1 || got["a"] != 1 {
		t.Errorf("counts are %v, want overflow:1 a:1", got)
	}
}

func TestLabelsFromManyWorkers(t *testing.T) {
	var table labelTable
	const workers, rounds, quota = 8, 500, 16
	table.setQuota(quota)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range rounds {
				table.count([]byte("l"+strconv.Itoa(i%(2*quota))), limiter.Granted)
				if i%100 == 0 {
					table.snapshot()
				}
			}
		})
	}
	wg.Wait()
	total := uint64(0)
	counts := labelCounts(&table, limiter.Granted)
	for _, n := range counts {
		total += n
	}
	if total != workers*rounds {
		t.Errorf("%d decisions counted, want %d", total, workers*rounds)
	}
	if len(counts) != quota+1 {
		t.Errorf("%d labels, want %d and overflow", len(counts), quota)
	}
}

func TestLabelDoesNotAllocate(t *testing.T) {
	var table labelTable
	table.setQuota(1)
	raw := []byte("api\x00")
	var buf [maxLabel]byte
	table.count(appendSafeLabel(buf[:0], raw), limiter.Granted)
	if n := testing.AllocsPerRun(100, func() {
		table.count(appendSafeLabel(buf[:0], raw), limiter.Granted)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
