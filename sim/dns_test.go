package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// seconds is a scenario that goes on for so many seconds, with a TTL of one.
func seconds(n int, change func(*Scenario)) *Scenario {
	return small(func(s *Scenario) {
		s.Length = time.Duration(n) * time.Second
		s.Clients[0].Arrivals.Every = ms(50)
		s.DNS = DNS{TTL: time.Second, Delay: Constant(ms(3))}
		change(s)
	})
}

// memberships returns what a client knew from when on, by the names that the log gives to servers.
func memberships(t *testing.T, s *Scenario) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for line := range strings.Lines(logOf(t, s, 1)) {
		words := strings.Fields(line)
		if len(words) > 3 && words[1] == "membership" {
			known[words[3]] = append(known[words[3]], words[0]+" "+strings.Join(words[4:], " "))
		}
	}
	return known
}

// first returns when a client first had a membership, and how often it changed at all.
func first(t *testing.T, known []string, members string) time.Duration {
	t.Helper()
	for _, k := range known {
		at, is, _ := strings.Cut(k, " ")
		if is == members {
			d, err := time.ParseDuration(at)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	t.Errorf("never %q: %q", members, known)
	return 0
}

// between fails unless an instant is in a range.
func inRange(t *testing.T, what string, at, least, most time.Duration) {
	t.Helper()
	if at < least || at > most {
		t.Errorf("%s at %v, not from %v to %v", what, at, least, most)
	}
}

// TestJoinAndLeave: what starts and ends is in DNS, and out of it, when the scenario says so, and
// clients see it within the TTL and their lookups.
func TestJoinAndLeave(t *testing.T) {
	const lookups = 6 * time.Millisecond
	s := seconds(10, func(s *Scenario) {
		s.DNS.Leave, s.DNS.Join = 1500*time.Millisecond, 500*time.Millisecond
		s.Faults = []Fault{{Kind: FaultKill, At: 2 * time.Second, For: 3 * time.Second, Server: "A"}}
	})
	known := memberships(t, s)["web"]
	if len(known) != 3 || known[0] != "0s A B" {
		t.Fatalf("%q", known)
	}
	inRange(t, "A leaves", first(t, known, "B"), 3500*time.Millisecond, 4500*time.Millisecond+lookups)
	inRange(t, "A joins", first(t, known, "B A.2"), 5500*time.Millisecond, 6500*time.Millisecond+lookups)

	s.DNS.Leave, s.DNS.Join = -1, -1
	if known := memberships(t, s)["web"]; len(known) != 1 {
		t.Errorf("with a DNS that nobody tells: %q", known)
	}
}

// TestPropagation: some clients see a change later than others, each by what was drawn for it.
func TestPropagation(t *testing.T) {
	s := seconds(8, func(s *Scenario) {
		s.Clients[0].Count = 30
		s.DNS.Propagation = Uniform(0, 4*time.Second)
		s.Faults = []Fault{{Kind: FaultMembers, At: time.Second, Members: []string{"B"}}}
	})
	var early, late int
	for name, known := range memberships(t, s) {
		at := first(t, known, "B")
		inRange(t, name+" sees it", at, time.Second, 6*time.Second+ms(6))
		switch {
		case at < 3*time.Second:
			early++
		case at > 4*time.Second:
			late++
		}
	}
	if early < 5 || late < 5 {
		t.Errorf("%d see it early and %d late", early, late)
	}
}

// TestWrongDNS: wrong, empty and failing DNS, and a server that does not exist.
func TestWrongDNS(t *testing.T) {
	at := func(kind FaultKind) *Scenario {
		return seconds(6, func(s *Scenario) {
			s.Faults = []Fault{{Kind: kind, At: time.Second, For: 2 * time.Second, Members: []string{"B"}}}
		})
	}
	known := memberships(t, at(FaultMembers))["web"]
	inRange(t, "B alone", first(t, known, "B"), time.Second, 2*time.Second+ms(6))
	if len(known) != 3 || !strings.HasSuffix(known[2], " A B") {
		t.Errorf("%q", known)
	}
	for _, kind := range []FaultKind{FaultEmpty, FaultResolver} {
		s := at(kind)
		if known := memberships(t, s)["web"]; len(known) != 1 {
			t.Errorf("%v: what was known is not kept: %q", kind, known)
		}
		failed := play(t, s, 1).of(RecordDiscoveryFailed)
		if len(failed) == 0 || failed[0].Err == nil || !within(&failed[0], 1000, 2010) {
			t.Errorf("%v: %d failures are told", kind, len(failed))
		}
	}
	s := at(FaultStranger)
	known = memberships(t, s)["web"]
	if len(known) != 3 || !strings.HasPrefix(strings.Fields(known[1])[1], "s-") || !strings.HasSuffix(known[1], " A B") {
		t.Errorf("%q", known)
	}
	got := play(t, s, 1)
	sent := got.count(RecordSend, func(r *Record) bool { return r.Server == -1 })
	lost := got.count(RecordLost, func(r *Record) bool { return r.Server == -1 && r.Cause == LostDead })
	if sent == 0 || sent != lost {
		t.Errorf("%d were sent to nobody, and %d of these lost", sent, lost)
	}
	// It passes for the oldest, and so each request waits for it for the preference of round 0.
	if n := got.count(RecordDecide, func(r *Record) bool { return r.Completion.Elapsed == ms(20) }); n < 30 {
		t.Errorf("%d decisions waited for who is not there", n)
	}
}

// TestNoServers: where DNS names nobody from the beginning, requests are refused, and their
// callers think for a while.
func TestNoServers(t *testing.T) {
	s := seconds(3, func(s *Scenario) {
		s.DNS.Members = []string{}
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveClosed, Size: 2}
	})
	got := play(t, s, 1)
	if n := got.count(RecordSubmit, func(r *Record) bool { return errors.Is(r.Err, core.ErrNoServers) }); n != 2*3000 {
		t.Errorf("%d were refused, not one in each millisecond for both", n)
	}
}

// TestSlowDNS: lookups that are given up are not answered, and nothing is left of them.
func TestSlowDNS(t *testing.T) {
	s := seconds(60, func(s *Scenario) { s.DNS.Delay = Constant(11 * time.Second) })
	w, err := New(s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for w.Step() {
		if n := len(w.clients[0].lookups); n > 1 {
			t.Fatalf("%v: %d lookups are under way", w.Now(), n)
		}
	}
	if st := w.clients[0].core.Stats(); st.RefreshFailures < 3 || st.MembershipChanges > 0 {
		t.Errorf("%d refreshes failed, %d did not", st.RefreshFailures, st.MembershipChanges)
	}
}

// TestYoungServersAreKnown: clients know all servers when the first request comes, also where the records last
// for longer than a server has lived.
func TestYoungServersAreKnown(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Servers[1].Age = time.Second
		s.DNS.TTL = time.Hour
		s.Clients[0].Count = 20
	})
	got := play(t, s, 1)
	if n := got.count(RecordSubmit, func(r *Record) bool { return len(r.Servers) != 2 }); n > 0 {
		t.Errorf("%d requests were made by who does not know both servers", n)
	}
	for _, skew := range []time.Duration{-30 * time.Second, -time.Hour, time.Hour} {
		if ago := s.longAgo(skew); ago <= 0 || ago > time.Hour {
			t.Errorf("with clocks that are %v off clients begin %v before", skew, ago)
		}
	}
}

// TestStrangerIsTheOldest: no server that a scenario may have is as old.
func TestStrangerIsTheOldest(t *testing.T) {
	s := small(func(s *Scenario) { s.Servers[0].Age = maxAge })
	w, err := New(s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := stranger(); l.id >= w.servers[0].id {
		t.Errorf("the stranger's ID is %v, and that of A %v", l.id, w.servers[0].id)
	}
	s.Servers[0].Age += time.Second
	if err := s.Validate(); err == nil {
		t.Error("a server may be older")
	}
}
