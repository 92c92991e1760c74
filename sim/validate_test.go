package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
)

// everything is a scenario that uses every field.
func everything() *Scenario {
	return small(func(s *Scenario) {
		s.Trackers = []Tracker{{Name: "t", TTL: time.Second, MaxSamples: 32, MinSamples: 1}}
		s.Services = []Service{{Name: "db", Parallel: 2, Time: Constant(ms(1)), Tracker: "t", Sample: 2, Queue: 10}}
		s.Clients[0].Mix = append(s.Clients[0].Mix, Choice{
			Weight: 2, Take: []Take{{"b", 2}}, Guard: []Guard{{"t", ms(100)}}, Work: "db",
		})
		s.Clients = append(s.Clients, Clients{
			Name: "batch", Count: 2, Arrivals: Arrivals{Kind: ArriveTrace, Times: []time.Duration{0, ms(1), ms(1)}}, Mix: s.Clients[0].Mix,
		})
		s.DNS.Members = []string{"A", "B"}
		s.Faults = []Fault{
			{Kind: FaultPartition, At: ms(1), From: "web", To: "A", Both: true},
			{Kind: FaultClock, From: "batch/1", Step: ms(1)},
			{Kind: FaultMembers, Members: []string{"B"}, For: ms(10)},
			{Kind: FaultWork, Service: "db", Dist: Constant(ms(1))},
			{Kind: FaultKill, Server: "A", At: ms(500), For: ms(10)},
		}
	})
}

// TestValidate breaks one field at a time, and expects its path.
func TestValidate(t *testing.T) {
	if err := everything().Validate(); err != nil {
		t.Fatal(err)
	}
	backwards := Uniform(2, 1)
	for field, change := range map[string]func(*Scenario){
		"Name":                                 func(s *Scenario) { s.Name = "a\nb" },
		"Purpose":                              func(s *Scenario) { s.Purpose = "\x1b[2J" },
		"Length":                               func(s *Scenario) { s.Length = 0 },
		"Warmup":                               func(s *Scenario) { s.Warmup = s.Length },
		"Auth":                                 func(s *Scenario) { s.Auth = 4 },
		"Layout":                               func(s *Scenario) { s.Layout = 3 },
		"Policy":                               func(s *Scenario) { s.Policy = policy.Default(); s.Policy.Unit = 0 },
		"Quotas":                               func(s *Scenario) { s.Quotas = apikey.Quotas{RateBuckets: 3} },
		"FailFast.Timeouts":                    func(s *Scenario) { s.FailFast.Timeouts = -1 },
		"Refresh.Min":                          func(s *Scenario) { s.Refresh.Min = 1 },
		"Buckets[0].Name":                      func(s *Scenario) { s.Buckets[0].Name = "b/1" },
		"Buckets[1].Name":                      func(s *Scenario) { s.Buckets = append(s.Buckets, s.Buckets[0]) },
		"Buckets[0].Window":                    func(s *Scenario) { s.Buckets[0].Window = us(1) },
		"Buckets[0].Count":                     func(s *Scenario) { s.Buckets[0].Count = -1 },
		"Buckets[0].Zipf":                      func(s *Scenario) { s.Buckets[0].Zipf = 1001 },
		"Trackers[0].TTL":                      func(s *Scenario) { s.Trackers[0].TTL = 0 },
		"Trackers[0].MaxSamples":               func(s *Scenario) { s.Trackers[0].MaxSamples = 0 },
		"Servers":                              func(s *Scenario) { s.Servers = nil; s.DNS.Members = nil; s.Faults = nil },
		"Servers[0].Name":                      func(s *Scenario) { s.Servers[0].Name = "A\x1b[31m" },
		"Servers[1].Name":                      func(s *Scenario) { s.Servers[1].Name = "A" },
		"Servers[0].Age":                       func(s *Scenario) { s.Servers[0].Age = ms(1500) },
		"Servers[0].Workers":                   func(s *Scenario) { s.Servers[0].Workers = -1 },
		"Servers[0].Queue":                     func(s *Scenario) { s.Servers[0].Queue = -1 },
		"Servers[0].Service":                   func(s *Scenario) { s.Servers[0].Service = backwards },
		"Servers[0].Skew":                      func(s *Scenario) { s.Servers[0].Skew = -maxSkew - 1 },
		"Servers[0].Probe":                     func(s *Scenario) { s.Servers[0].Probe = -ms(1) },
		"Servers[0].ClockSkew":                 func(s *Scenario) { s.Servers[0].ClockSkew = us(1) },
		"Servers[0]":                           func(s *Scenario) { s.Servers[0].Estimator = 99 },
		"Services[0].Time":                     func(s *Scenario) { s.Services[0].Time = backwards },
		"Services[0].Tracker":                  func(s *Scenario) { s.Services[0].Tracker = "none" },
		"Services[0].Queue":                    func(s *Scenario) { s.Services[0].Queue = -1 },
		"Clients":                              func(s *Scenario) { s.Clients = nil; s.Faults = nil },
		"Clients[0].Name":                      func(s *Scenario) { s.Clients[0].Name = "A"; s.Faults = nil },
		"Clients[0].Count":                     func(s *Scenario) { s.Clients[0].Count = -1 },
		"Clients[0].Skew":                      func(s *Scenario) { s.Clients[0].Skew = maxSkew + 1 },
		"Clients[0].MaxInFlight":               func(s *Scenario) { s.Clients[0].MaxInFlight = -1 },
		"Clients[0].Arrivals.Kind":             func(s *Scenario) { s.Clients[0].Arrivals.Kind = 0 },
		"Clients[0].Arrivals.Every":            func(s *Scenario) { s.Clients[0].Arrivals.Every = 0 },
		"Clients[0].Arrivals.Size":             func(s *Scenario) { s.Clients[0].Arrivals.Kind = ArriveClosed },
		"Clients[0].Arrivals.Think":            func(s *Scenario) { s.Clients[0].Arrivals.Think = backwards },
		"Clients[0].Arrivals.Start":            func(s *Scenario) { s.Clients[0].Arrivals.Start = -1 },
		"Clients[0].Arrivals.Stop":             func(s *Scenario) { s.Clients[0].Arrivals.Stop = -1 },
		"Clients[1].Arrivals.Times[2]":         func(s *Scenario) { s.Clients[1].Arrivals.Times[2] = 0 },
		"Clients[0].Mix":                       func(s *Scenario) { s.Clients[0].Mix = nil },
		"Clients[0].Mix[0]":                    func(s *Scenario) { s.Clients[0].Mix[0].Take = nil },
		"Clients[0].Mix[1].Take[0].Bucket":     func(s *Scenario) { s.Clients[0].Mix[1].Take[0].Bucket = "none" },
		"Clients[0].Mix[1].Guard[0].Tracker":   func(s *Scenario) { s.Clients[0].Mix[1].Guard[0].Tracker = "none" },
		"Clients[0].Mix[1].Guard[0].Threshold": func(s *Scenario) { s.Clients[0].Mix[1].Guard[0].Threshold = us(1) },
		"Clients[0].Mix[1].Work":               func(s *Scenario) { s.Clients[0].Mix[1].Work = "none" },
		"Links[0].From":                        func(s *Scenario) { s.Links[0].From = "none" },
		"Links[0].To":                          func(s *Scenario) { s.Links[0].From, s.Links[0].To = "web", "batch" },
		"Links[0].Delay":                       func(s *Scenario) { s.Links[0].Delay = backwards },
		"Links[0].Late":                        func(s *Scenario) { s.Links[0].Late = backwards },
		"Links[0].Loss":                        func(s *Scenario) { s.Links[0].Loss = million + 1 },
		"Links[0].Duplicate":                   func(s *Scenario) { s.Links[0].Duplicate = million + 1 },
		"Links[0].Reorder":                     func(s *Scenario) { s.Links[0].Reorder = million + 1 },
		"Links[0].Burst.Enter":                 func(s *Scenario) { s.Links[0].Burst.Enter = million + 1 },
		"Links[0].Burst.Leave":                 func(s *Scenario) { s.Links[0].Burst.Leave = million + 1 },
		"Links[0].Burst.Loss":                  func(s *Scenario) { s.Links[0].Burst.Loss = million + 1 },
		"DNS.TTL":                              func(s *Scenario) { s.DNS.TTL = -1 },
		"DNS.Delay":                            func(s *Scenario) { s.DNS.Delay = backwards },
		"DNS.Propagation":                      func(s *Scenario) { s.DNS.Propagation = backwards },
		"DNS.Members[1]":                       func(s *Scenario) { s.DNS.Members[1] = "none" },
		"Faults[0].Kind":                       func(s *Scenario) { s.Faults[0].Kind = 0 },
		"Faults[0].At":                         func(s *Scenario) { s.Faults[0].At = -1 },
		"Faults[0].For":                        func(s *Scenario) { s.Faults[0].For = -1 },
		"Faults[0].Dist":                       func(s *Scenario) { s.Faults[0].Dist = backwards },
		"Faults[0].From":                       func(s *Scenario) { s.Faults[0].From = "none" },
		"Faults[0].To":                         func(s *Scenario) { s.Faults[0].To = "batch/0" },
		"Faults[0].Chance":                     func(s *Scenario) { s.Faults[0].Kind = FaultLoss; s.Faults[0].Chance = million + 1 },
		"Faults[1].From":                       func(s *Scenario) { s.Faults[1].From = "B" },
		"Faults[1].Step":                       func(s *Scenario) { s.Faults[1].Step = maxSkew + 1 },
		"Faults[1].Server":                     func(s *Scenario) { s.Faults[1].Server = "none" },
		"Faults[2].Members":                    func(s *Scenario) { s.Faults[2].Members = nil },
		"Faults[2].Members[0]":                 func(s *Scenario) { s.Faults[2].Members[0] = "none" },
		"Faults[3].Service":                    func(s *Scenario) { s.Faults[3].Service = "none" },
		"Faults[4].Server":                     func(s *Scenario) { s.Faults[4].Server = "none" },
	} {
		s := everything()
		change(s)
		var wrong *FieldError
		if err := s.Validate(); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("with a bad %s the error is %v", field, err)
		}
		if _, err := New(s, 1, nil); err == nil {
			t.Errorf("a run begins with a bad %s", field)
		}
	}
}

// TestEverythingRuns plays the scenario that uses every field.
func TestEverythingRuns(t *testing.T) { play(t, everything(), 1) }
