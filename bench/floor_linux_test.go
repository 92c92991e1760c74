package main

import (
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// TestMain lets this program be its own child, as the floor is one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == floorCommand || os.Args[1] == insideCommand) {
		main()
		return
	}
	os.Exit(m.Run())
}

// The floor's answers are grants by the judgment of the load, for requests of each shape that is compared,
// and a forged request has none.
func TestFloorAnswers(t *testing.T) {
	tenant, err := newTenant("bench", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newTenant("other", 1, 0) // the same key ID, another secret
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []generator.Work{{}, {Resources: 3, Guards: 1, Buckets: 3}} {
		s, err := startFloor(t.Context(), tenant, work.Guards, max(1, work.Resources))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.end)
		cfg := generator.Config{Keys: []apikey.Key{tenant.key}, Flows: 2, InFlight: 4, Work: work, For: 50 * time.Millisecond}
		got, err := measure(t.Context(), s, cfg)
		if err != nil || got.PerSecond <= 0 {
			t.Fatalf("%+v: %+v, %v", work, got, err)
		}
		cfg.Keys = []apikey.Key{other.key}
		if _, err := measure(t.Context(), s, cfg); err == nil {
			t.Errorf("%+v: it answers whom it does not know", work)
		}
	}
}
