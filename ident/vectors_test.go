package ident_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/weirhq/weir/ident"
)

// idVectors are IDs that independent implementations computed. Names are in
// hexadecimal, because they are any bytes.
type idVectors struct {
	Buckets []struct {
		Case, Name, ID string
		Window, Limit  uint32
	}
	Trackers []struct {
		Case, Name, ID string
		TTL, Max, Min  uint32
	}
	TrackersLayout1 []struct {
		Case, Name, ID        string
		TTL, Max, Buffer, Min uint32
	} `json:"trackers_layout1"`
}

func TestVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var v idVectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Buckets) != 16 || len(v.Trackers) != 12 || len(v.TrackersLayout1) != 12 {
		t.Fatalf("testdata/ids.json has %d buckets, %d and %d trackers; want 16, 12, 12",
			len(v.Buckets), len(v.Trackers), len(v.TrackersLayout1))
	}
	for _, c := range v.Buckets {
		if got := ident.Bucket(name(t, c.Name), c.Window, c.Limit).String(); got != c.ID {
			t.Errorf("%s: Bucket(0x%s, %d, %d) = %s, want %s", c.Case, c.Name, c.Window, c.Limit, got, c.ID)
		}
	}
	for _, c := range v.Trackers {
		if got := ident.Tracker(name(t, c.Name), c.TTL, c.Max, c.Min).String(); got != c.ID {
			t.Errorf("%s: Tracker(0x%s, %d, %d, %d) = %s, want %s", c.Case, c.Name, c.TTL, c.Max, c.Min, got, c.ID)
		}
	}
	for _, c := range v.TrackersLayout1 {
		if got := ident.TrackerLayout1(name(t, c.Name), c.TTL, c.Max, c.Buffer, c.Min).String(); got != c.ID {
			t.Errorf("%s: TrackerLayout1(0x%s, %d, %d, %d, %d) = %s, want %s", c.Case, c.Name, c.TTL, c.Max, c.Buffer, c.Min, got, c.ID)
		}
	}
}

func name(t *testing.T, hexName string) string {
	t.Helper()
	b, err := hex.DecodeString(hexName)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
