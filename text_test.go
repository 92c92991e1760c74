package weir

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

func TestDecisionsInWords(t *testing.T) {
	guard := GuardResult{Guard: inventory.Below(100 * time.Millisecond), Latency: 40 * time.Millisecond, Passed: true}
	tripped := GuardResult{Guard: inventory.Below(100 * time.Millisecond), Latency: 140 * time.Millisecond}
	covered := ResourceResult{Resource: checkout.Take(1), ActualRate: 7}
	full := ResourceResult{Resource: checkout.Take(5), ActualRate: 98, Deficit: 3}
	read := ResourceResult{Resource: checkout.Take(0), ActualRate: 7}
	noRoom := ResourceResult{Resource: checkout.Take(5), Deficit: 5}
	never := ResourceResult{Resource: Bucket("never", 3, 0).Take(1), Deficit: 1} // no window: it is not the room that lacks
	lastToken := ResourceResult{Resource: checkout.Take(5), ActualRate: 95, Deficit: 5}
	overByOne := ResourceResult{Resource: checkout.Take(5), ActualRate: 96, Deficit: 1}
	if !lastToken.NoRoom() || overByOne.NoRoom() || covered.NoRoom() {
		t.Error("NoRoom is a deficit although the tokens would have fitted, and nothing else")
	}
	rejected := Decision{profile: Profile{Server: 5, Round: 1, Elapsed: 20 * time.Millisecond}, resources: 2, guards: 1}
	rejected.inlineResources[0], rejected.inlineResources[1], rejected.inlineGuards[0] = covered, noRoom, tripped
	for want, v := range map[string]fmt.Stringer{
		`guard "inventory": 40ms is below 100ms`:                                                guard,
		`guard "inventory": 140ms is not below 100ms`:                                           tripped,
		`bucket "checkout": covered (7 of 100 in 1s)`:                                           covered,
		`bucket "checkout": 7 of 100 in 1s`:                                                     read,
		`bucket "never": 1 of 1 tokens missing (0 of 3 in 0s)`:                                  never,
		`bucket "checkout": 3 of 5 tokens missing (98 of 100 in 1s)`:                            full,
		`bucket "checkout": the server has no room for another bucket (quota rate_buckets_max)`: noRoom,
		"no decision":                                          Decision{},
		"granted: nothing was asked":                           Decision{granted: true},
		"granted by server 5 in round 1 after 20ms":            Decision{granted: true, profile: Profile{Server: 5, Round: 1, Elapsed: 20 * time.Millisecond}, resources: 1},
		"granted by server 5 in the final interval after 50ms": Decision{granted: true, profile: Profile{Server: 5, Round: 2, Final: true, Elapsed: 50 * time.Millisecond}, resources: 1},
		"nobody was asked":                                     Profile{KeepPort: true},
		"server 5, the oldest, in round 0 after 1ms; 1 of 3 servers had answered; 0 replays":                                                                                             Profile{Server: 5, Oldest: true, Elapsed: time.Millisecond, KeepPort: true, Servers: 3, Answered: 1},
		"server 5, the only one, in round 1 after 21ms; 1 of 1 server had answered; 1 replay":                                                                                            Profile{Server: 5, Oldest: true, Round: 1, Elapsed: 21 * time.Millisecond, KeepPort: true, Servers: 1, Answered: 1, Replays: 1},
		"server 5, a fallback, in the final interval after 50ms; 2 of 3 servers had answered; 1 replay; it advised another port":                                                         Profile{Server: 5, Round: 2, Final: true, Elapsed: 50 * time.Millisecond, Servers: 3, Answered: 2, Replays: 1},
		`rejected by server 5 in round 1 after 20ms; guard "inventory": 140ms is not below 100ms; bucket "checkout": the server has no room for another bucket (quota rate_buckets_max)`: rejected,
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&RejectedError{Decision: rejected}).Error(); got != "weir: "+rejected.String() {
		t.Errorf("%q", got)
	}
}

func TestErrorsOfTheCore(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct{ err, want error }{
		{core.ErrClosed, ErrClosed},
		{core.ErrTooManyInFlight, ErrTooManyInFlight},
		{core.ErrNoServers, ErrNoServers},
		{core.ErrFailFast, ErrFailFast},
		{fmt.Errorf("core: Entropy: %w", broken), broken},
	} {
		if got := translate(tt.err); !errors.Is(got, tt.want) || !strings.HasPrefix(got.Error(), "weir: ") {
			t.Errorf("%v became %v", tt.err, got)
		}
	}
}

func TestTimeoutCountsFailedSends(t *testing.T) {
	err := &TimeoutError{Elapsed: 60 * time.Millisecond, Seen: core.Seen{Servers: 1, Endpoints: 2, SendFailures: 1}}
	if want := "asked 1 server at 2 addresses for 60ms, 1 datagram could not be sent; received nothing"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q lacks %q", err, want)
	}
}
