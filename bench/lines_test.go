package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// refusing is an output whose reader is gone.
type refusing struct{ why error }

func (r refusing) Write([]byte) (int, error) { return 0, r.why }

// A run of which nobody reads the lines any more ends, with the reason; one whose lines are read goes on.
func TestLinesThatNobodyReads(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var out strings.Builder
	r := compareReport{Ratios: map[string]float64{}, lines: lineWriter{&out, end}}
	b := bar{name: "cpu", of: cpu}
	if r.add(&b, []sample{{CPU: 1}}, []sample{{CPU: 2}}); ctx.Err() != nil || !strings.Contains(out.String(), "cpu") {
		t.Fatalf("%v, after %q", context.Cause(ctx), out.String())
	}
	r.lines = lineWriter{refusing{io.ErrClosedPipe}, end}
	if r.add(&b, []sample{{CPU: 1}}, []sample{{CPU: 2}}); !errors.Is(context.Cause(ctx), io.ErrClosedPipe) {
		t.Errorf("the run goes on: %v", context.Cause(ctx))
	}
}

// What comes to no number is not measured, and is neither within a gate nor beyond it.
func TestNoQuotient(t *testing.T) {
	for _, pair := range []sample{{CPU: 0}, {CPU: 1}} { // the other one, which is measured or not
		var lines, out strings.Builder
		r := compareReport{Plan: comparePlan{JSON: true}, Ratios: map[string]float64{}, lines: &lines}
		b := bar{name: "cpu", of: cpu, gate: 1, most: true}
		row := r.add(&b, []sample{{CPU: 0}, pair, pair, pair}, []sample{{CPU: 0}, pair, pair, pair})
		if err := r.end(&out); row != nil || err == nil || errors.Is(err, errGate) || !strings.Contains(err.Error(), "not measured: cpu") {
			t.Errorf("0 and %v by as much: %+v, %v; %s", pair.CPU, row, err, out.String())
		}
	}
}

// A picture is of rows.
func TestChartOfNoRow(t *testing.T) {
	for _, text := range []string{`{"Rows":[null]}`, `{"Systems":[null]}`} {
		if err := chartOf(strings.NewReader(text), io.Discard); err == nil || !strings.Contains(err.Error(), "null") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
