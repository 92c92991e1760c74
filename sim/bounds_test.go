package sim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestAmount holds what is too much to begin with, and what is just not.
func TestAmount(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Scenario)
		field  string // "" for none
	}{
		{"as many as may be", func(s *Scenario) { s.Clients[0].Arrivals.Every = 10 }, ""},
		{"one client's rate", func(s *Scenario) { s.Clients[0].Arrivals.Every = 9 }, "Clients[0].Arrivals"},
		{"at random", func(s *Scenario) { s.Clients[0].Arrivals = Arrivals{Kind: ArrivePoisson, Every: 1} }, "Clients[0].Arrivals"},
		{"for a short time", func(s *Scenario) {
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveConstant, Every: 1, Start: ms(500), Stop: ms(600)}
		}, ""},
		{"not at all", func(s *Scenario) {
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveConstant, Every: 1, Start: ms(500), Stop: ms(400)}
		}, ""},
		{"clients", func(s *Scenario) {
			s.Clients[0].Count, s.Clients[0].Arrivals.Every = maxClients, us(600)
		}, "Clients[0].Arrivals"},
		{"all groups", func(s *Scenario) {
			s.Clients = append(s.Clients, s.Clients[0])
			s.Clients[0].Arrivals.Every, s.Clients[1].Arrivals.Every, s.Clients[1].Name = 15, 15, "batch"
		}, "Clients[1].Arrivals"},
		{"more than can be counted", func(s *Scenario) {
			s.Length = maxLength
			s.Clients[0].Count = 1 << 10
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveBurst, Every: 1, Size: 1 << 10}
		}, "Clients[0].Arrivals"},
		{"bursts at one instant", func(s *Scenario) {
			s.Clients[0].Count = 2
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveBurst, Every: time.Second, Size: 1<<19 + 1}
		}, "Clients[0].Arrivals"},
		{"callers", func(s *Scenario) {
			s.Clients[0].Count = 2
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveClosed, Size: 1<<19 + 1}
		}, "Clients[0].Arrivals"},
		{"as many callers as may be", func(s *Scenario) {
			s.Clients[0].Count = 2
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveClosed, Size: 1 << 19}
		}, ""},
		{"recorded ones", func(s *Scenario) {
			s.Clients[0].Count = maxClients
			s.Clients[0].Arrivals = Arrivals{Kind: ArriveTrace, Times: make([]time.Duration, 2000)}
		}, "Clients[0].Arrivals"},
		{"buckets", func(s *Scenario) {
			s.Buckets[0].Count = maxBuckets
			s.Buckets = append(s.Buckets, Bucket{Name: "c", Limit: 1, Window: time.Second})
		}, "Buckets[1].Count"},
	} {
		var wrong *FieldError
		switch err := small(c.change).Validate(); {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (!errors.As(err, &wrong) || wrong.Field != c.field):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestBounds sees runs end that become too much, each for its own reason, and others go on.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		want string
		set  func(*World)
	}{
		{"more than 100000000 requests", func(w *World) { w.asked = maxRequests - 50 }},
		{"more than 10000000000 events", func(w *World) { w.counts.Events = maxEvents - 50 }},
		{"requests wait for a decision", func(w *World) { w.counts.Pending = maxPending }},
		{"", func(*World) {}},
	} {
		w, err := New(small(nil), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.set(w)
		for w.Step() {
		}
		if err := w.Err(); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}

// TestUnderWay sees a run end whose datagrams do not arrive before too many of them are under way:
// of one burst, too.
func TestUnderWay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a gigabyte")
	}
	w, err := New(small(func(s *Scenario) {
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveBurst, Every: time.Second, Size: 1 << 20}
		s.Clients[0].MaxInFlight = 1 << 20
		s.Servers = append(s.Servers, Server{Name: "C", Age: time.Second}, Server{Name: "D", Age: time.Second})
		s.Links[0].Delay = Constant(time.Hour)
		s.Links[0].Duplicate = million
	}), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for w.Step() {
	}
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), "under way at one time") {
		t.Errorf("the error is %v", err)
	}
	if n := len(w.queue.heap); n > maxPlanned+100 {
		t.Errorf("%d events are planned", n)
	}
}
