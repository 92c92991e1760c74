package ident_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
)

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func TestNewServerID(t *testing.T) {
	for _, c := range []struct {
		start time.Time
		low   uint32
		want  ident.ServerID
	}{
		{epoch, 0, 0},
		{epoch, 1<<23 - 1, 1<<23 - 1},
		{epoch.Add(time.Second), 0, 1 << 23},
		{epoch.Add(2*time.Second - 1), 5, 1<<23 + 5},
		{time.Date(2026, 8, 1, 12, 0, 0, 0, time.FixedZone("", 7200)), 7, 49888800<<23 + 7},
		{time.Unix(epoch.Unix()+1<<41-1, 0), 1<<23 - 1, 1<<64 - 1},
	} {
		id, err := ident.NewServerID(c.start, c.low)
		if err != nil || id != c.want {
			t.Errorf("NewServerID(%v, %d) = %v, %v; want %v", c.start, c.low, id, err, c.want)
			continue
		}
		if want := c.start.Truncate(time.Second); !id.Start().Equal(want) || id.Start().Location() != time.UTC || id.Low() != c.low {
			t.Errorf("%v: Start() = %v, Low() = %d; want %v and %d", id, id.Start(), id.Low(), want, c.low)
		}
	}
	for _, c := range []struct {
		start time.Time
		low   uint32
		say   string
	}{
		{epoch.Add(-1), 0, "before 2025"},
		{time.Time{}, 0, "before 2025"},
		{time.Unix(epoch.Unix()+1<<41, 0), 0, "41 bits"},
		{time.Unix(1<<62, 0), 0, "41 bits"},
		{epoch, 1 << 23, "low part 8388608"},
	} {
		id, err := ident.NewServerID(c.start, c.low)
		if !errors.Is(err, ident.ErrServerID) || !strings.Contains(err.Error(), c.say) || id != 0 {
			t.Errorf("NewServerID(%v, %d) = %v, %v; want an error that says %q", c.start, c.low, id, err, c.say)
		}
	}
}

func TestServerIDOrderAndText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := ident.ServerID(rapid.Uint64().Draw(t, "a"))
		b := ident.ServerID(rapid.Uint64().Draw(t, "b"))
		if a.Start().Before(b.Start()) && !a.Older(b) {
			t.Errorf("%v started before %v and is not older", a, b)
		}
		if a.Older(b) && b.Older(a) || a.Older(a) || (a != b && !a.Older(b) && !b.Older(a)) {
			t.Errorf("age is no strict order of %v and %v", a, b)
		}
		back, err := ident.ParseServerID(a.String())
		if err != nil || back != a {
			t.Errorf("ParseServerID(%q) = %v, %v", a, back, err)
		}
		again, err := ident.NewServerID(a.Start(), a.Low())
		if err != nil || again != a {
			t.Errorf("NewServerID(%v, %d) = %v, %v; want %v", a.Start(), a.Low(), again, err, a)
		}
		target, ok := ident.ParseTarget(strings.ToUpper(a.Label()) + ".rl.example.com.")
		if !ok || target != a {
			t.Errorf("ParseTarget of %q = %v, %v", a.Label(), target, ok)
		}
	})
}

func TestParseServerIDRefuses(t *testing.T) {
	for _, bad := range []string{"", "00", "01", "-1", "+1", " 1", "1 ", "1_0", "0x1", "1e3", "18446744073709551616", "١"} {
		if id, err := ident.ParseServerID(bad); !errors.Is(err, ident.ErrServerID) || id != 0 {
			t.Errorf("ParseServerID(%q) = %v, %v; want ErrServerID", bad, id, err)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for _, c := range []struct {
		name string
		want ident.ServerID
		ok   bool
	}{
		{"s-7.rl.example.com.", 7, true},
		{"S-7.RL.example.COM", 7, true},
		{"s-7", 7, true},
		{"s-0.", 0, true},
		{"s-18446744073709551615.rl.test.", 1<<64 - 1, true},
		{"s-18446744073709551616.rl.test.", 0, false},
		{"s-07.rl.test.", 0, false},
		{"s--7.rl.test.", 0, false},
		{"s-.rl.test.", 0, false},
		{"s7.rl.test.", 0, false},
		{"t-7.rl.test.", 0, false},
		{"s-7a.rl.test.", 0, false},
		{".s-7.rl.test.", 0, false},
		{"rl.s-7.test.", 0, false},
		{"", 0, false},
		{".", 0, false},
	} {
		if id, ok := ident.ParseTarget(c.name); id != c.want || ok != c.ok {
			t.Errorf("ParseTarget(%q) = %v, %v; want %v, %v", c.name, id, ok, c.want, c.ok)
		}
	}
}

func parseServerIDTarget() *storm.Target {
	target := storm.New("FuzzParseServerID", func(t testing.TB, s string) {
		id, err := ident.ParseServerID(s)
		if err == nil && id.String() != s {
			t.Errorf("ParseServerID(%q) = %v, which is written otherwise", s, id)
		}
		if err != nil && id != 0 {
			t.Errorf("ParseServerID(%q) = %v beside an error", s, id)
		}
		// A string of digits without a leading zero is an ID exactly when it fits.
		v, parseErr := strconv.ParseUint(s, 10, 64)
		if want := parseErr == nil && strconv.FormatUint(v, 10) == s; want != (err == nil) {
			t.Errorf("ParseServerID(%q): error %v, want an ID: %v", s, err, want)
		}
	})
	for _, s := range []string{"", "0", "7", "007", "18446744073709551615", "18446744073709551616", "-1", "s-1"} {
		target.Add(s)
	}
	return target
}

func FuzzParseServerID(f *testing.F)      { parseServerIDTarget().Fuzz(f) }
func TestStormParseServerID(t *testing.T) { parseServerIDTarget().Storm(t) }

func parseTargetTarget() *storm.Target {
	target := storm.New("FuzzParseTarget", func(t testing.TB, s string) {
		id, ok := ident.ParseTarget(s)
		if ok && !strings.HasPrefix(strings.ToLower(s)+".", id.Label()+".") {
			t.Errorf("ParseTarget(%q) = %v", s, id)
		}
		if !ok && id != 0 {
			t.Errorf("ParseTarget(%q) = %v beside false", s, id)
		}
	})
	for _, s := range []string{"s-7.rl.test.", "S-0", "s-07.x", "s-", "", "...", "s-18446744073709551616."} {
		target.Add(s)
	}
	return target
}

func FuzzParseTarget(f *testing.F)      { parseTargetTarget().Fuzz(f) }
func TestStormParseTarget(t *testing.T) { parseTargetTarget().Storm(t) }
