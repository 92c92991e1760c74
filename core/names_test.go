package core

import (
	"fmt"
	"testing"
)

// TestNames is about what people read in logs: every value of every kind has a
// name of its own, and one that is none says its number.
func TestNames(t *testing.T) {
	for _, kind := range []struct {
		values []fmt.Stringer
		none   string
	}{
		{stringers(Granted, SendFailed), "Outcome(5)"},
		{stringers(SendFirst, SendReport), "SendKind(5)"},
		{stringers(EventCompleted, EventRecovered), "EventKind(9)"},
		{stringers(LookupSRV, LookupAddrs), "LookupKind(3)"},
		{stringers(DatagramCounted, DatagramVerdicts-1), "DatagramVerdict(11)"},
	} {
		seen := map[string]bool{}
		for i, v := range kind.values {
			name := v.String()
			if last := i == len(kind.values)-1; (name == kind.none) != last || seen[name] || name == "" {
				t.Errorf("value %d of %T is called %q", i, v, name)
			}
			seen[name] = true
		}
	}
}

// stringers are the values from first to last, and the one behind.
func stringers[T interface {
	~uint8
	fmt.Stringer
}](first, last T,
) (all []fmt.Stringer) {
	for v := first; v <= last+1; v++ {
		all = append(all, v)
	}
	return all
}
