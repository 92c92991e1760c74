package simcompare

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/sim"
)

// made is a comparison in which a scalar has these values by policy and seed, and no other has any.
func made(scalar string, policies ...[]float64) *Comparison {
	c := &Comparison{Scenario: small(nil), Seed: 1, Seeds: len(policies[0])}
	for i, values := range policies {
		column := Column{Name: "policy-" + string(rune('a'+i)), Seeds: &sim.Seeds{Runs: len(values)}}
		for _, s := range sim.Scalars() {
			if s.Name != scalar {
				column.Seeds.Scalars = append(column.Seeds.Scalars, sim.Spread{Name: s.Name})
				column.values = append(column.values, make([]value, len(values)))
				continue
			}
			var have []float64
			var seeds []value
			for _, v := range values {
				seeds = append(seeds, value{v, !math.IsNaN(v)})
				if !math.IsNaN(v) {
					have = append(have, v)
				}
			}
			column.Seeds.Scalars = append(column.Seeds.Scalars, sim.SpreadOf(s.Name, have))
			column.values = append(column.values, seeds)
		}
		c.Columns = append(c.Columns, column)
	}
	return c
}

// TestBest holds which columns are marked: what tells two policies apart is their difference under
// each seed.
func TestBest(t *testing.T) {
	none := math.NaN()
	for _, c := range []struct {
		scalar   string
		policies [][]float64
		want     []bool
	}{
		{"latency_p50_ms", [][]float64{{3, 3}, {2, 2}, {2, 2}}, []bool{false, true, true}},
		{"availability_percent", [][]float64{{90, 91}, {99, 99}}, []bool{false, true}},
		{"fallback_percent", [][]float64{{90, 91}, {99, 99}}, []bool{false, false}},
		{"latency_p50_ms", [][]float64{{2, 2}, {2, 2}}, []bool{false, false}},
		// One seed tells nothing, nor does one that both have.
		{"latency_p50_ms", [][]float64{{3}, {2}}, []bool{false, false}},
		{"latency_p50_ms", [][]float64{{3, none, 3}, {none, 2, 2}, {9, 8, 9}}, []bool{true, true, false}},
		// Seeds differ by far more than policies, and one policy is the better under each.
		{"latency_p50_ms", [][]float64{{1, 100, 50}, {1.5, 100.6, 50.4}}, []bool{true, false}},
		// The better on average, but not under each seed.
		{"latency_p50_ms", [][]float64{{1, 4, 2}, {2, 3, 3}, {9, 9, 9}}, []bool{true, true, false}},
		{"latency_p50_ms", [][]float64{{none, none}, {2, 2}, {3, 3}}, []bool{false, true, false}},
		{"latency_p50_ms", [][]float64{{none}, {2}}, []bool{false, true}},
	} {
		rows := made(c.scalar, c.policies...).Rows(true)
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		var got []bool
		for _, cell := range rows[0].Cells {
			got = append(got, cell.Best)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %v marks %v, want %v", c.scalar, c.policies, got, c.want)
		}
	}
}

// TestScalarsAreKnown holds that what is said about scalars is about ones that there are.
func TestScalarsAreKnown(t *testing.T) {
	known := make(map[string]bool)
	for _, s := range sim.Scalars() {
		known[s.Name] = true
	}
	for _, names := range []map[string]bool{neither, higher, chosen} {
		for name := range names {
			if !known[name] {
				t.Errorf("there is no %s", name)
			}
		}
	}
	if Better("false_grants") != Lower || Better("goodput_percent") != Higher || Better("requests") != Neither {
		t.Error("directions")
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		spread sim.Spread
		want   string
	}{
		{sim.Spread{}, "–"},
		{sim.Spread{Runs: 1, Mean: 100}, "100"},
		{sim.Spread{Runs: 1, Mean: 1.0 / 3}, "0.3333"},
		{sim.Spread{Runs: 1, Mean: 12345.6}, "12346"},
		{sim.Spread{Runs: 1, Mean: 1e-9}, "0"},
		{sim.Spread{Runs: 3, Mean: 99.98765, Half: 0.01234}, "99.988 ± 0.012"},
		{sim.Spread{Runs: 3, Mean: 14874.3, Half: 344}, "14874 ± 344"},
		{sim.Spread{Runs: 3, Mean: 5, Half: 0.0996}, "5.00 ± 0.10"},
		{sim.Spread{Runs: 1, Mean: math.Inf(1)}, "+Inf"},
	} {
		if got := (Cell{Spread: c.spread}).String(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.spread, got, c.want)
		}
	}
}

// TestTable shows a table in one block and in two.
func TestTable(t *testing.T) {
	c := made("latency_p50_ms", []float64{3, 3.5}, []float64{2, 2.5}, []float64{4, 4.5})
	c.Columns[1].Name = "a-name-that-is-long"
	for width, want := range map[int]string{
		80: `small: A small one.
1s, seeds 1 to 2: mean ± half the width of its 95 % interval

                              a-name-that-
                   policy-a        is-long    policy-c
latency_p50_ms ↓  3.2 ± 3.2      2.2 ± 3.2*  4.2 ± 3.2
`,
		50: "",
	} {
		var b strings.Builder
		if err := c.WriteTable(&b, Choice{}, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > width {
				t.Errorf("a line of %d characters in a table of %d: %s", n, width, line)
			}
		}
		if want != "" && b.String() != want {
			t.Errorf("%s", b.String())
		}
		if n := strings.Count(b.String(), "latency_p50_ms"); (width == 80) != (n == 1) {
			t.Errorf("%d blocks in %d characters", n, width)
		}
	}
	c.Scenario.Purpose = "A|<b>"
	var b strings.Builder
	if err := c.WriteMarkdown(&b, Every()); err != nil {
		t.Fatal(err)
	}
	want := `**small**: A\|\<b\> 1s, seeds 1 to 2: mean ± half the width of its 95 % interval.

| | policy-a | a-name-that-is-long | policy-c |
|---|---|---|---|
| ` + "`latency_p50_ms`" + ` ↓ | 3.2 ± 3.2 | **2.2 ± 3.2** | 4.2 ± 3.2 |
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
