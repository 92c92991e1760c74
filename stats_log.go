package weir

import (
	"log/slog"
	"strings"
	"unicode"

	"github.com/weirhq/weir/core"
)

// LogValue returns what is not 0 as a group, with names for outcomes, kinds of
// datagrams and verdicts, such as outcomes.granted=42. It is the [slog.LogValuer]
// of the statistics.
func (s Stats) LogValue() slog.Value {
	var g statsGroup
	g.count("submitted", s.Submitted)
	g.count("empty", s.Empty)
	g.count("canceled", s.Canceled)
	g.group("outcomes", len(s.Outcomes), func(i int) (string, uint64) { return core.Outcome(i).String(), s.Outcomes[i] })
	g.group("decided_in_round", len(s.Decided.InRound), func(i int) (string, uint64) {
		name := string(rune('0' + i))
		if i == core.DecidedRounds-1 {
			name += "_or_later"
		}
		return name, s.Decided.InRound[i]
	})
	g.count("decided_in_final_interval", s.Decided.InFinal)
	g.count("decided_by_oldest", s.Decided.ByOldest)
	g.count("decided_by_fallback", s.Decided.ByFallback)
	g.group("sent", len(s.Sent), func(i int) (string, uint64) { return core.SendKind(i).String(), s.Sent[i] })
	g.group("send_failures", len(s.SendFailures), func(i int) (string, uint64) { return core.SendKind(i).String(), s.SendFailures[i] })
	g.group("datagrams", len(s.Datagrams), func(i int) (string, uint64) { return core.DatagramVerdict(i).String(), s.Datagrams[i] })
	g.count("observations", s.Observations)
	g.count("observations_left_out", s.ObservationsLeftOut)
	g.count("lost_reports", s.LostReports)
	g.count("advice", s.Advice)
	g.count("steers", s.Steers)
	g.count("rebinds", s.Rebinds)
	g.count("steering_failures", s.SteeringFailures)
	g.count("refreshes", s.Refreshes)
	g.count("refresh_failures", s.RefreshFailures)
	g.count("membership_changes", s.MembershipChanges)
	g.count("skipped_targets", s.Skipped.Targets)
	g.count("skipped_future", s.Skipped.Future)
	g.count("skipped_failed", s.Skipped.Failed)
	g.count("skipped_addresses", s.Skipped.Addresses)
	g.count("skipped_excess", s.Skipped.Excess)
	g.count("lookups", s.Lookups)
	g.count("fail_fast_trips", s.FailFastTrips)
	g.count("failed_fast", s.FailedFast)
	g.count("probes", s.Probes)
	if s.FailingFast {
		g = append(g, slog.Bool("failing_fast", true))
	}
	g.count("read_errors", s.ReadErrors)
	g.count("in_flight", uint64(s.InFlight))
	g.count("kept", uint64(s.Kept))
	g.count("sockets", uint64(s.Sockets))
	return slog.GroupValue(g...)
}

// statsGroup is the part of the statistics that is not 0.
type statsGroup []slog.Attr

func (g *statsGroup) count(name string, n uint64) {
	if n > 0 {
		*g = append(*g, slog.Uint64(name, n))
	}
}

func (g *statsGroup) group(name string, n int, at func(int) (string, uint64)) {
	var sub statsGroup
	for i := range n {
		text, count := at(i)
		sub.count(identifier(text), count)
	}
	if len(sub) > 0 {
		*g = append(*g, slog.Attr{Key: name, Value: slog.GroupValue(sub...)})
	}
}

// identifier makes a word of a text.
func identifier(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, text)
}
