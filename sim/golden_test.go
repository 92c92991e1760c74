package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

// goldens are scenarios whose whole logs are kept.
func goldens() map[string]*Scenario {
	few := func(times ...time.Duration) Arrivals { return Arrivals{Kind: ArriveTrace, Times: times} }
	return map[string]*Scenario{
		"loss": small(func(s *Scenario) {
			s.Length = ms(100)
			s.Clients[0].Arrivals = few(0, ms(3), ms(50))
			s.Links[0] = Link{From: "*", To: "*", Delay: Lognormal(ms(2), ms(30)), Loss: 300_000, Duplicate: 200_000}
		}),
		"restart": small(func(s *Scenario) {
			s.Length = 4 * time.Second
			s.Servers[0].Service = Constant(ms(2))
			s.Clients[0].Arrivals = few(ms(999), ms(1500), ms(3900))
			s.DNS = DNS{TTL: time.Second, Delay: Constant(ms(4))}
			s.Faults = []Fault{{Kind: FaultKill, At: ms(1001), For: ms(1000), Server: "A"}}
		}),
		"steering": small(func(s *Scenario) {
			s.Length = ms(100)
			s.Servers = []Server{{Name: "A", Age: time.Second, Workers: 2, Steering: true, Service: Constant(ms(1))}}
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveBurst, Size: 11, Every: ms(90)}
		}),
		"work": small(func(s *Scenario) {
			s.Length = ms(100)
			s.Trackers = []Tracker{{Name: "t", TTL: time.Second, MaxSamples: 4, MinSamples: 1}}
			s.Services = []Service{{Name: "db", Time: Exponential(ms(15)), Tracker: "t", Queue: 1}}
			s.Clients[0] = Clients{
				Name: "web", Count: 2, Arrivals: Arrivals{Kind: ArriveClosed, Size: 2, Think: Constant(ms(20))},
				Mix: []Choice{{Take: []Take{{"b", 1}}, Guard: []Guard{{"t", ms(12)}}, Work: "db"}, {Take: []Take{{"b", 2}}}},
			}
		}),
		"preference": small(func(s *Scenario) {
			s.Length = ms(100)
			s.Policy = policy.Default()
			s.Policy.Preference = policy.List(1, 1)
			s.Clients[0].Arrivals = few(0, ms(50))
			// First A answers in the instant in which it is no longer preferred. Then both answer in
			// round 1, in which it is preferred again.
			s.Links = []Link{{From: "*", To: "*", Delay: Constant(ms(5))}, {From: "web", To: "A", Both: true, Delay: Constant(ms(10))}}
			s.Faults = []Fault{{Kind: FaultDelay, At: ms(45), For: ms(50), From: "web", To: "*", Both: true, Dist: Constant(ms(6))}}
		}),
		"outage": small(func(s *Scenario) {
			s.Clients[0].Arrivals.Every = ms(70)
			s.FailFast.Timeouts = 3
			s.FailFast.Probe = ms(200)
			s.Faults = []Fault{{Kind: FaultPartition, At: ms(100), For: ms(500), From: "web", To: "*", Both: true}}
		}),
	}
}

// TestGoldenLogs compares logs with those in testdata; -rewrite writes them.
func TestGoldenLogs(t *testing.T) {
	for name, s := range goldens() {
		t.Run(name, func(t *testing.T) {
			s.Name = name
			compareGolden(t, name+".log", logOf(t, s, 1))
		})
	}
}

// TestGoldenDigest holds the whole of a long run, in which everything goes on at once, by its hash:
// it is the same on all machines, and with the race detector.
func TestGoldenDigest(t *testing.T) {
	compareGolden(t, "wild.digest", digestOf(t, wild(), 7)+"\n")
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if rewriting() {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			t.Fatalf("line %d is\n%s\nnot\n%s\ngo test ./sim -run Golden -rewrite takes it over", i+1, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, not %d", len(g), len(w))
}
