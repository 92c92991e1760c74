package sim

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"testing"
)

const bigBits = 224

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(bigBits).SetFloat64(x) }

// bigTail returns the standard normal density at z and the share of the distribution above z, by
// series, in software arithmetic that is the same everywhere.
func bigTail(z *big.Float) (density, tail *big.Float) {
	square := new(big.Float).Mul(z, z)
	half := new(big.Float).Quo(square, bigOf(2))
	// e^-x = (e^-(x/2^16))^(2^16)
	small := new(big.Float).Quo(half, bigOf(1<<16))
	e, term := bigOf(1), bigOf(1)
	for n := 1; n < 40; n++ {
		term = new(big.Float).Quo(new(big.Float).Mul(term, small), bigOf(float64(-n)))
		e = new(big.Float).Add(e, term)
	}
	for range 16 {
		e = new(big.Float).Mul(e, e)
	}
	pi, _, _ := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798", 10, bigBits, big.ToNearestEven)
	root := new(big.Float).Sqrt(new(big.Float).Mul(bigOf(2), pi))
	density = new(big.Float).Quo(e, root)
	sum := new(big.Float).Copy(z)
	term = new(big.Float).Copy(z)
	for n := 3; term.Sign() != 0 && term.MantExp(nil) > sum.MantExp(nil)-bigBits; n += 2 {
		term = new(big.Float).Quo(new(big.Float).Mul(term, square), bigOf(float64(n)))
		sum = new(big.Float).Add(sum, term)
	}
	tail = new(big.Float).Sub(bigOf(0.5), new(big.Float).Mul(density, sum))
	return density, tail
}

// bigQuantile returns what so much of the distribution is above, by Newton's steps from a guess, and
// that in units of 2^-logBits.
func bigQuantile(z, tail *big.Float) (*big.Float, int64) {
	for range 4 {
		density, above := bigTail(z)
		step := new(big.Float).Quo(new(big.Float).Sub(above, tail), density)
		z = new(big.Float).Add(z, step)
	}
	scaled := new(big.Float).Add(new(big.Float).SetMantExp(z, logBits), bigOf(0.5))
	n, _ := scaled.Int(nil)
	if scaled.Sign() < 0 {
		n.Sub(n, big.NewInt(1))
	}
	return z, n.Int64()
}

// bigTable computes normalTable.
func bigTable() []int64 {
	root := bigOf(2)
	for range normalSteps {
		root = new(big.Float).Sqrt(root) // 2^(1/8)
	}
	var table []int64
	tail := new(big.Float).Quo(root, bigOf(2)) // of 7/8 of an octave
	last, z := bigOf(-0.25), bigOf(-0.12)
	for range len(normalTable) {
		guess := new(big.Float).Sub(new(big.Float).Mul(bigOf(2), z), last)
		var entry int64
		last = z
		z, entry = bigQuantile(guess, tail)
		table = append(table, entry)
		tail = new(big.Float).Quo(tail, root)
	}
	return table
}

// TestNormalTable computes the table anew; -rewrite writes it.
func TestNormalTable(t *testing.T) {
	got := bigTable()
	var b bytes.Buffer
	b.WriteString("package sim\n\n// normalTable is described at normal. TestNormalTable computes it: do not edit.\nvar normalTable = [508]int64{")
	for i, z := range got {
		if i%4 == 0 {
			b.WriteString("\n\t")
		} else {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "%d,", z)
	}
	b.WriteString("\n}\n")
	if rewriting() {
		if err := os.WriteFile("normal_table.go", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("normal_table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Error("normal_table.go is not what is computed; go test ./sim -run TestNormalTable -rewrite writes it")
	}
	if _, q := bigQuantile(bigOf(2.3), new(big.Float).Quo(bigOf(1), bigOf(100))); q != normal99 {
		t.Errorf("the 99th percentile is %d, not %d", q, int64(normal99))
	}
}
