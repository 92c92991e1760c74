package core

import (
	"fmt"
	"reflect"
	"testing"
)

// modelTotal is what happened in all runs, to see that everything did.
type modelTotal struct {
	runs, entries, requests int
	most                    int // entries of a run
	stats                   Stats
	delayed, spared         uint64
}

// add adds a run up.
func (m *modelTotal) add(w *world) {
	m.runs++
	m.entries += len(w.m.log)
	m.requests += len(w.m.requests)
	m.most = max(m.most, len(w.m.log))
	addUp(reflect.ValueOf(&m.stats).Elem(), reflect.ValueOf(w.stats))
	m.delayed += w.delayed
	m.spared += w.spared()
}

func addUp(sum, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			addUp(sum.Field(i), v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			addUp(sum.Index(i), v.Index(i))
		}
	case reflect.Uint64:
		sum.SetUint(sum.Uint() + v.Uint())
	}
}

// check fails where the runs were many and something never happened: the
// comparison would then be one of nothing.
func (m *modelTotal) check(t *testing.T) {
	t.Helper()
	t.Logf("%d runs, %d requests, %d calls, at most %d in a run", m.runs, m.requests, m.entries, m.most)
	if m.runs < 5000 {
		return
	}
	s := &m.stats
	for what, counts := range map[string][]uint64{
		"outcome":      s.Outcomes[Granted:],
		"round":        append(s.Decided.InRound[:], s.Decided.InFinal),
		"who decides":  {s.Decided.ByOldest, s.Decided.ByFallback},
		"send":         s.Sent[SendFirst:],
		"send failure": s.SendFailures[SendFirst:],
		"verdict":      s.Datagrams[:],
		"delivery":     {m.delayed, m.spared},
		"rest":         {s.Empty, s.Canceled, s.Observations, s.Advice, s.Steers, s.MembershipChanges},
	} {
		for i, n := range counts {
			if n == 0 {
				t.Errorf("%s %d of %s never happened", what, i, fmt.Sprint(counts))
			}
		}
	}
}
