package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// A picture is well formed, has all that was found, and no number that is none.
func TestChart(t *testing.T) {
	r := compareReport{
		Machine: "a <machine> & more",
		Rows: []*compareRow{
			{Name: "throughput", Ratio: 1.1, Gate: 0.75, Goal: 0.9},
			{Name: "cpu_redis", Ratio: 0.02, Gate: 0.5, Goal: 0.33},
			{Name: "cpu_redis_lone", Ratio: 0.6},
		},
		Systems: []*systemRow{
			{System: "floor", Sockets: "one each", At64: 140_000, CPU64: 6},
			{System: "r-server", Sockets: "one each", At64: 150_000, CPU64: 5.9},
			{System: "redis", Sockets: "4", At64: 0, CPU64: 0}, // nothing was found
		},
	}
	var out strings.Builder
	if err := r.draw(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{"throughput", "cpu_redis_lone", "floor", "r-server", "redis", "140k", "5.90", "1.10", "a &lt;machine&gt; &amp; more"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for _, bad := range []string{"NaN", "Inf", `width="-`} {
		if strings.Contains(text, bad) {
			t.Errorf("there is %q in\n%s", bad, text)
		}
	}
	if marks := strings.Count(text, "#cc0000"); marks != 2 {
		t.Errorf("%d gates, want 2", marks)
	}
	if err := new(compareReport).draw(io.Discard); err == nil {
		t.Error("nothing is drawn without an error")
	}
}

// The longest bar ends before the values begin, and none begins before the names end.
func TestBarLengths(t *testing.T) {
	const all = chartWidth - chartLeft - chartRight
	linear, logarithmic := bars{most: 200}, bars{log: true, least: 0.1, most: 10}
	for v, want := range map[float64]float64{0: 0, 100: all / 2, 200: all, 300: all} {
		if got := linear.length(v); got != want {
			t.Errorf("%v of 200 is %v long, want %v", v, got, want)
		}
	}
	for v, want := range map[float64]float64{0: 0, 0.01: 0, 0.1: 0, 1: all / 2, 10: all} {
		if got := logarithmic.length(v); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v of 0.1 to 10 is %v long, want %v", v, got, want)
		}
	}
}
