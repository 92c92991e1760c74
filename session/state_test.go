package session

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// every makes each kind of call with a state, and returns their errors.
func (w *world) every(s State) map[string]error {
	_, _, execute := Execute(context.Background(), s, w.key, oneToken())
	_, discover := Discover(context.Background(), s, w.key)
	_, report := Report(s, w.key, inventory.Took(ms))
	return map[string]error{"Execute": execute, "Discover": discover, "Report": report}
}

func TestSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := w.session()
		first := h.State
		h.grant()
		for call, err := range w.every(first) {
			if !errors.Is(err, ErrSpent) {
				t.Errorf("%s: %v", call, err)
			}
		}
		if _, err := Close(first); !errors.Is(err, ErrSpent) || len(w.host.Ports()) != 1 {
			t.Errorf("Close: %v; open: %v", err, w.host.Ports())
		}
		if s := first.Stats(); s.Submitted != 0 || s.Sockets != 0 {
			t.Errorf("the first state's counts became %+v", s)
		}
		h.grant()
		if n := w.servers[0].Log().Identities(); n != 2 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// While a call is at work with a state nobody else can be.
func TestSpentWhileAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.delay(0, 10*ms)
		h := w.session()
		first := h.State
		time.AfterFunc(5*ms, func() {
			for call, err := range w.every(first) {
				if !errors.Is(err, ErrSpent) {
					t.Errorf("%s: %v", call, err)
				}
			}
			if _, err := Close(first); !errors.Is(err, ErrSpent) {
				t.Errorf("Close: %v", err)
			}
		})
		if d := h.grant(); d.Elapsed() != 10*ms {
			t.Errorf("%v", d)
		}
	})
}

// Many goroutines that pass states on as they like: of each state one call wins,
// and all goes on from there.
func TestManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.delay(0, ms)
		h := w.session()
		var mu sync.Mutex
		won, lost := 0, 0
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for range 20 {
					mu.Lock()
					s := h.State
					mu.Unlock()
					_, _ = s.Stats(), s.Servers()
					var err error
					switch i % 3 {
					case 0:
						s, err = Report(s, w.key, inventory.Took(ms))
						if errors.Is(err, weir.ErrNoServers) {
							err = nil
						}
					default:
						s, _, err = Execute(context.Background(), s, w.key, oneToken())
					}
					mu.Lock()
					switch {
					case err == nil:
						h.State = s
						won++
					case errors.Is(err, ErrSpent):
						lost++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if s := h.Stats(); won+lost != 640 || won == 0 || lost == 0 || uint64(won) < s.Submitted || s.Outcomes[core.Granted] != s.Submitted {
			t.Errorf("%d won, %d lost, %+v", won, lost, s)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := w.session()
		first := h.State
		h.grant()
		second := h.State
		for range 3 {
			var err error
			if h.State, err = Close(h.State); err != nil {
				t.Error(err)
			}
		}
		if ports := w.host.Ports(); len(ports) != 0 {
			t.Errorf("open: %v", ports)
		}
		for name, s := range map[string]State{"closed": h.State, "spent by Close": second, "spent before": first, "zero": {}} {
			for call, err := range w.every(s) {
				if !errors.Is(err, weir.ErrClosed) {
					t.Errorf("%s: %s: %v", name, call, err)
				}
			}
			if _, err := Close(s); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		if s := h.Stats(); s.Outcomes[core.Granted] != 1 || s.Sockets != 0 || len(h.Servers()) != 0 {
			t.Errorf("%+v, %v", s, h.Servers())
		}
		if s := second.Stats(); s.Sockets != 1 || len(second.Servers()) != 1 {
			t.Errorf("%+v, %v", s, second.Servers())
		}
		if s := (State{}).Stats(); !reflect.DeepEqual(s, weir.Stats{}) || (State{}).Servers() != nil {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseWithoutACall(t *testing.T) {
	s, err := New(Config{Zone: "rl.test"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = Close(s); err != nil {
		t.Error(err)
	}
	if _, err := Discover(t.Context(), s, newKey(t, 7)); !errors.Is(err, weir.ErrClosed) {
		t.Error(err)
	}
}

// What a session was made of is its own: the caller may use the servers' memory again.
func TestServersAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		origin := time.Now()
		members := w.members()
		s, err := newState(Config{Servers: members, Stack: w.stack}, func() core.Time {
			return core.Time{Mono: time.Since(origin), Wall: today.UnixMilli()}
		}, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		members[0].ID, members[0].Addrs[0] = 1, netip.MustParseAddrPort("10.9.9.9:1")
		s, d, err := Execute(t.Context(), s, w.key, oneToken())
		if err != nil || d.Server() != 1000 {
			t.Errorf("%v, %v", d, err)
		}
		if _, err := Close(s); err != nil {
			t.Error(err)
		}
	})
}

// New finds what is wrong with a configuration under any key.
func TestNew(t *testing.T) {
	member, err := discovery.ParseServer("1@127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	endless := policy.Default()
	endless.Unit = 24 * time.Hour
	undeliverable := policy.Default()
	undeliverable.DeliveryDelay = 3
	tests := map[string]Config{
		"Zone, Domain, Servers, Hosted": {},
		"Zone":                          {Zone: "127.0.0.1"},
		"Domain":                        {Domain: "a..b"},
		"Policy.replays":                {Hosted: true, Policy: policy.Policy{Unit: 1, Replays: 1 << 16}},
		"Policy.delivery-delay":         {Hosted: true, Policy: undeliverable},
		"Layout":                        {Hosted: true, Layout: 3},
		"Refresh.Min":                   {Hosted: true, Refresh: core.RefreshConfig{Min: 1}},
		"Limits.Servers":                {Hosted: true, Limits: core.Limits{Servers: -1}},
		"Servers":                       {Servers: []discovery.Server{member, member}},
		"":                              {Hosted: true, Policy: endless, Layout: wire.Layout1}, // there are keys for this
	}
	for want, cfg := range tests {
		s, err := New(cfg)
		var field *weir.ConfigError
		switch {
		case want == "" && err != nil, want != "" && (!errors.As(err, &field) || field.Field != want):
			t.Errorf("%q: %v", want, err)
		case want != "" && s.m != nil:
			t.Errorf("%s: a state came with the error", want)
		}
	}
}
