package weir

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/core"
)

func logged(s Stats) string {
	var b bytes.Buffer
	drop := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}
	slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: drop})).Info("", "weir", s)
	return strings.TrimSpace(b.String())
}

func TestStatsInALog(t *testing.T) {
	var s Stats
	if got := logged(s); got != "" {
		t.Errorf("nothing at all: %s", got)
	}
	s.Submitted = 43
	s.Outcomes[core.Granted], s.Outcomes[core.TimedOut] = 42, 1
	s.Decided.InRound[0], s.Decided.InRound[core.DecidedRounds-1] = 41, 1
	s.Sent[core.SendFirst], s.Sent[core.SendCompletion] = 86, 2
	s.Datagrams[core.DatagramNotAnswer] = 3
	s.FailingFast = true
	want := "weir.submitted=43 weir.outcomes.granted=42 weir.outcomes.timed_out=1" +
		" weir.decided_in_round.0=41 weir.decided_in_round.7_or_later=1" +
		" weir.sent." + identifier(core.SendFirst.String()) + "=86 weir.sent." + identifier(core.SendCompletion.String()) + "=2" +
		" weir.datagrams." + identifier(core.DatagramNotAnswer.String()) + "=3 weir.failing_fast=true"
	if got := logged(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every number is shown, a new one too.
func TestEveryStatisticIsLogged(t *testing.T) {
	var s Stats
	n := uint64(1000)
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Uint64:
			n++
			v.SetUint(n)
		case reflect.Int:
			n++
			v.SetInt(int64(n))
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("%v is new here", v.Kind())
		}
	}
	fill(reflect.ValueOf(&s).Elem())
	text := logged(s) + " "
	for i := uint64(1001); i <= n; i++ {
		if got := strings.Count(text, fmt.Sprintf("=%d ", i)); got != 1 {
			t.Errorf("number %d is there %d times", i, got)
		}
	}
}
