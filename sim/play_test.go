package sim

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// tape keeps the records of a run.
type tape []Record

// Record keeps a copy of r and of what it points to.
func (t *tape) Record(r *Record) {
	kept := *r
	kept.Payload = bytes.Clone(r.Payload)
	kept.Servers = slices.Clone(r.Servers)
	if r.Completion != nil {
		done := *r.Completion
		kept.Completion = &done
	}
	if r.Lookup != nil {
		l := *r.Lookup
		kept.Lookup = &l
	}
	if r.Engine != nil {
		e := *r.Engine
		kept.Engine = &e
	}
	*t = append(*t, kept)
}

// of returns the records of a kind.
func (t tape) of(kind RecordKind) (found []Record) {
	for i := range t {
		if t[i].Kind == kind {
			found = append(found, t[i])
		}
	}
	return found
}

// both hands records to several recorders.
type both []Recorder

func (b both) Record(r *Record) {
	for _, rec := range b {
		rec.Record(r)
	}
}

// play runs a scenario and holds its records to what must be so in every run.
func play(t testing.TB, s *Scenario, seed uint64) tape {
	t.Helper()
	var got tape
	sum, err := Run(s, seed, both{&got, newConservation(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Requests != uint64(len(got.of(RecordSubmit))) {
		t.Errorf("the summary has %d requests, the records %d", sum.Requests, len(got.of(RecordSubmit)))
	}
	return got
}

// logOf returns the event log of a run.
func logOf(t testing.TB, s *Scenario, seed uint64) string {
	t.Helper()
	var b bytes.Buffer
	l := NewLog(&b, s)
	if _, err := Run(s, seed, both{l, newConservation(t, s)}); err != nil {
		t.Fatal(err)
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	return b.String()
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func us(n int) time.Duration { return time.Duration(n) * time.Microsecond }

// small is a scenario to change: a client that asks every 10 ms for a second, and servers A and B,
// 1 ms away.
func small(change func(*Scenario)) *Scenario {
	s := &Scenario{
		Name: "small", Length: time.Second,
		Buckets: []Bucket{{Name: "b", Limit: 1_000_000, Window: time.Second}},
		Servers: []Server{{Name: "A", Age: 20 * time.Second}, {Name: "B", Age: 10 * time.Second}},
		Clients: []Clients{{Name: "web", Arrivals: Arrivals{Kind: ArriveConstant, Every: ms(10)}, Mix: []Choice{{Take: []Take{{"b", 1}}}}}},
		Links:   []Link{{From: "*", To: "*", Delay: Constant(ms(1))}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// dense makes a scenario have so many requests, a millisecond apart.
func dense(s *Scenario, requests int) {
	s.Length = ms(requests)
	s.Clients[0].Arrivals.Every = ms(1)
}

// count returns how many records of a kind there are for which something holds.
func (t tape) count(kind RecordKind, is func(*Record) bool) (n int) {
	for i := range t {
		if t[i].Kind == kind && is(&t[i]) {
			n++
		}
	}
	return n
}

// outcomes counts how requests ended.
func (t tape) outcomes() (n [core.SendFailed + 1]int) {
	for _, r := range t.of(RecordDecide) {
		n[r.Completion.Outcome]++
	}
	return n
}
