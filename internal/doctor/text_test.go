package doctor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 1234 * time.Microsecond: "1.23 ms", 12 * time.Millisecond: "12 ms", -12 * time.Millisecond: "-12 ms",
		1500 * time.Millisecond: "1.5 s", time.Minute: "1m", 61 * time.Second: "1m1s", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 24 * time.Hour: "24h", 60 * time.Hour: "2.5 days", 700 * day: "700 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// The healthy text, whole.
func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292", "[fd00::1]:29292")
		w.net.SetLink(slow(s.Addrs[0], 2*time.Millisecond))
		r := w.run(w.lookedUp(named(s)))
		var out strings.Builder
		if err := Write(&out, r); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(`key      aes, ID 7; quotas: dedup_ttl 300 ms, rate_window unlimited
policy   default: horizon 60 ms, the key allows 300 (a server may allow less)
servers  zone rl.test, layout 2
DNS      192.0.2.53:53 answered within 0.00 ms
         SRV _ratelimitly._udp.c-7.rl.test, TTL 5.0 s
         + s-SID.rl.test, port 29292

server SID, up 10m, the oldest
  address                 lost    min / median / max         clock      1200 B
  10.0.0.1:29292          0/5     4.00 / 4.00 / 4.00 ms      +0 ms      pass
  [fd00::1]:29292         0/5     0.00 / 0.00 / 0.00 ms      +0 ms      pass

client   5 of 5 decided, in 0.00 ms at most, by server SID

All is well.
`, "SID", s.ID.String())
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	})
}

func TestExact(t *testing.T) {
	for d, want := range map[time.Duration]string{
		2*time.Hour + 37*time.Millisecond + 400*time.Microsecond: "2h0m0.037s", -time.Hour: "1h", 24 * time.Hour: "24h", 3 * time.Second: "3s",
	} {
		if got := exact(Millis(d)); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestPolicyText(t *testing.T) {
	for _, text := range []string{"default", "strict-oldest", "default unit=33ms", "fastest-valid unit=50ms replays=3"} {
		if got := policyText(mustPolicy(t, text)); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	far := mustPolicy(t, "default unit=1ms replays=5 gap=fixed:3 preference=fixed:2 final=2 final-preference=1 completion-delivery=off")
	if got := policyText(far); mustPolicy(t, got) != far || len(got) >= len(far.String()) {
		t.Errorf("%q", got)
	}
}

func TestWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Report{Verdict: NoDecision, Diagnoses: []Diagnosis{{Severity: Fault, Says: strings.Repeat("word ", 40), Do: "do", Unsure: "unsure"}}}
		var out strings.Builder
		if err := Write(&out, r); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"\n1. word word", "\n   word word", "\n   -> do\n   ?  unsure\n"} {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%q is not in\n%s", s, &out)
			}
		}
	})
}

// An output that is full is told.
func TestWriteError(t *testing.T) {
	full := errors.New("full")
	if err := Write(failing{full}, &Report{}); !errors.Is(err, full) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// JSON has IDs as text, since many readers lose digits of them, and milliseconds.
func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(slow(s.Addrs[0], 2*time.Millisecond))
		b, err := json.Marshal(w.run(w.config(s)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"verdict":"well"`, `"id":"` + s.ID.String() + `"`, `"median_ms":4,`, `"diagnoses":[]`, `"key_id":"7"`, `"address":"10.0.0.1:29292"`, `"decided_by":["`} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s is not in %s", want, b)
			}
		}
	})
}
