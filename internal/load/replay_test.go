package load

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
)

func compiled(t *testing.T, text string) *policy.Timeline {
	t.Helper()
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	line, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// sendings has the link note when each datagram leaves for a server, by its bytes, and lose its first few copies.
func (w *world) sendings(lost int) map[string][]time.Duration {
	begin, at := time.Now(), map[string][]time.Duration{}
	w.link(func(p udp.Packet, f *udp.Fate) {
		if !up(p) {
			return
		}
		of := string(p.Payload)
		at[of] = append(at[of], time.Since(begin))
		f.Drop = len(at[of]) <= lost
	})
	return at
}

// What has no answer is sent again, the same bytes, when the policy's rounds begin, and given up at its horizon;
// what is answered is left alone.
func TestReplays(t *testing.T) {
	const unit = 20 * time.Millisecond
	for _, c := range []struct {
		policy  string
		lost    int             // copies of each request
		want    []time.Duration // after the first
		granted bool
	}{
		{"default", 0, nil, true},
		{"default", 1, []time.Duration{unit}, true},
		{"default", 9, []time.Duration{unit}, false},
		{"unit=20ms replays=3 gap=fixed:1 preference=fixed:0 final=1", 2, []time.Duration{unit, 2 * unit}, true},
		{"unit=20ms replays=3 gap=exponential:1:2:4 preference=fixed:0 final=1", 9, []time.Duration{unit, 3 * unit, 7 * unit}, false},
		{"unit=20ms replays=0 preference=fixed:0 final=2", 9, nil, false},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			at := w.sendings(c.lost)
			cfg := w.config(w.serve("10.0.0.1"))
			cfg.InFlight, cfg.Rate, cfg.Replays = 0, 1000, compiled(t, c.policy)
			r := w.run(cfg)
			if uint64(len(at)) != r.Sent || r.Replays != r.Sent*uint64(len(c.want)) || r.Wrong+r.Late != 0 {
				t.Errorf("%s, %d lost: %d requests seen, %+v", c.policy, c.lost, len(at), r)
			}
			if want := r.Sent; c.granted && r.Granted != want || !c.granted && r.Lost != want {
				t.Errorf("%s, %d lost: %+v", c.policy, c.lost, r)
			}
			if !c.granted && r.Latency.Max < float64(cfg.Replays.Horizon().Microseconds()) {
				t.Errorf("%s: given up after %v us", c.policy, r.Latency.Max)
			}
			for _, times := range at {
				var after []time.Duration
				for _, t := range times[1:] {
					after = append(after, (t - times[0]).Round(time.Millisecond))
				}
				if !slices.Equal(after, c.want) {
					t.Fatalf("%s, %d lost: sent again after %v, want %v", c.policy, c.lost, after, c.want)
				}
			}
		})
	}
}

// A sender that slept through rounds makes up none of them.
func TestReplaysAfterSleep(t *testing.T) {
	cfg := Config{Replays: compiled(t, "unit=10ms replays=3 gap=fixed:1 preference=fixed:0 final=1")}
	r := cfg.newReplays(4)
	r.add(asked{slot: 1, at: 0})
	r.add(asked{slot: 2, at: int64(5 * time.Millisecond)})
	if at, ok := r.due(); !ok || at != int64(10*time.Millisecond) {
		t.Fatalf("due at %v, %v", time.Duration(at), ok)
	}
	var took []uint32
	for a := r.take(int64(33 * time.Millisecond)); a != nil; a = r.take(int64(33 * time.Millisecond)) {
		took = append(took, a.slot)
	}
	if want := []uint32{1, 2}; !slices.Equal(took, want) {
		t.Errorf("replays of %v, want %v", took, want)
	}
	if at, ok := r.due(); !ok || at != int64(35*time.Millisecond) { // the third of the second
		t.Errorf("due at %v, %v", time.Duration(at), ok)
	}
	for i := range uint32(9) { // more than can be kept
		r.add(asked{slot: 10 + i, at: int64(time.Second)})
	}
	took = nil
	late := int64(time.Second + 49*time.Millisecond)
	for a := r.take(late); a != nil; a = r.take(late) {
		took = append(took, a.slot)
	}
	if want := []uint32{15, 16, 17, 18}; !slices.Equal(took, want) {
		t.Errorf("replays of %v, want %v", took, want)
	}
	if at, ok := r.due(); ok {
		t.Errorf("due at %v, and nothing is", time.Duration(at))
	}
}

// Nothing is replayed at its horizon or after: servers may have forgotten it, and nobody waits for an answer.
func TestReplaysEndAtTheHorizon(t *testing.T) {
	cfg := Config{Replays: compiled(t, "unit=10ms replays=3 gap=fixed:1 preference=fixed:0 final=1")}
	r := cfg.newReplays(4)
	r.add(asked{slot: 1, at: 0})
	r.add(asked{slot: 2, at: int64(time.Millisecond)})
	at := int64(cfg.Replays.Horizon())
	if a := r.take(at); a == nil || a.slot != 2 {
		t.Errorf("replay of %+v, want the second", a)
	}
	if a := r.take(at); a != nil {
		t.Errorf("replay of %+v", a)
	}
	if at, ok := r.due(); ok {
		t.Errorf("due at %v, and nothing is", time.Duration(at))
	}
}

// What is wrong with a policy's horizon is told as wrong with the policy's replays: a timeout was not given.
func TestReplaysHorizonIsNoTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		server := w.serve("10.0.0.1")
		for policy, rate := range map[string]float64{
			"unit=1m replays=1 gap=fixed:1 preference=fixed:0 final=1":     10,
			"unit=500us replays=0 gap=fixed:1 preference=fixed:0 final=0":  10,
			"unit=600ms replays=1 gap=fixed:1 preference=fixed:0 final=1":  MaxRate,
			"unit=2001ms replays=0 gap=fixed:1 preference=fixed:0 final=0": 10, // the key's quota is 2 s
		} {
			cfg := w.config(server)
			cfg.InFlight, cfg.Rate, cfg.Replays = 0, rate, compiled(t, policy)
			var wrong *FieldError
			if err := Check(cfg); !errors.As(err, &wrong) || wrong.Field != "Replays" {
				t.Errorf("%s: %v", policy, err)
			}
		}
	})
}

// A server remembers a request, and answers it, up to the policy's horizon, which a client rounds up too.
func TestReplaysDedupTTL(t *testing.T) {
	cfg := Config{Replays: compiled(t, "unit=20500us replays=1 gap=fixed:1 preference=fixed:0 final=1")}
	cfg.Timeout = cfg.Replays.Horizon()
	if got := cfg.dedupTTL(newKey(t, apikey.AuthAES)); got != 62 {
		t.Errorf("%d ms for %v", got, cfg.Timeout)
	}
}

func TestReplaysNeedARate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.config(w.serve("10.0.0.1"))
		cfg.Replays = compiled(t, "default")
		var wrong *FieldError
		if err := Check(cfg); !errors.As(err, &wrong) || wrong.Field != "Replays" {
			t.Errorf("%v", err)
		}
	})
}
