package vectors

import "testing"

// The counts are those of the files; a file that loses entries would make other tests weaker in
// silence.
func TestEveryFileIsWhole(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"requests", len(Requests(t)), 84},
		{"reports", len(Reports(t)), 28},
		{"responses", len(Responses(t)), 181},
		{"traps", len(Traps(t)), 2},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d entries, want %d", c.name, c.got, c.want)
		}
	}
}

func TestEntriesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	once := func(kind, name string) {
		if name == "" || seen[kind+name] {
			t.Errorf("%s %q: a case has a name of its own", kind, name)
		}
		seen[kind+name] = true
	}
	for _, r := range Requests(t) {
		once("request", r.Case)
		if len(r.Datagram) == 0 || len(r.PDU) == 0 || len(r.Identity) != 16 || r.DedupTTL == 0 {
			t.Errorf("request %s: something is missing", r.Case)
		}
	}
	for _, r := range Reports(t) {
		once("report", r.Case)
		if len(r.Datagram) == 0 || len(r.PDU) == 0 || len(r.Observations) == 0 {
			t.Errorf("report %s: something is missing", r.Case)
		}
	}
	for _, r := range Responses(t) {
		once("response", r.Case)
		if len(r.Members) == 0 || len(r.Request) == 0 {
			t.Errorf("response %s: something is missing", r.Case)
		}
		if r.Accept == (r.Reason != "") || r.Accept == (r.Decision.Server == 0) {
			t.Errorf("response %s: either a decision or a reason", r.Case)
		}
	}
}
