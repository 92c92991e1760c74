package sim

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
)

// ServerVerdicts counts datagrams that servers handled by [limiter.Verdict].
type ServerVerdicts [limiter.DropFloor + 1]uint64

// MarshalJSON writes an object of the verdicts' names.
func (c ServerVerdicts) MarshalJSON() ([]byte, error) {
	return countsJSON(c[limiter.Granted:], func(i int) string { return (limiter.Granted + limiter.Verdict(i)).String() }), nil
}

// ClientVerdicts counts answers that reached clients by [core.DatagramVerdict].
type ClientVerdicts [core.DatagramVerdicts]uint64

// MarshalJSON writes an object of the verdicts' names.
func (c ClientVerdicts) MarshalJSON() ([]byte, error) {
	return countsJSON(c[:], func(i int) string { return core.DatagramVerdict(i).String() }), nil
}

// Causes counts datagrams that did not arrive by [Cause].
type Causes [LostKilled + 1]uint64

// MarshalJSON writes an object of the causes' names.
func (c Causes) MarshalJSON() ([]byte, error) {
	return countsJSON(c[LostLink:], func(i int) string { return (LostLink + Cause(i)).String() }), nil
}

// sum returns how many there are of all causes.
func (c *Causes) sum() uint64 {
	n := uint64(0)
	for _, of := range c {
		n += of
	}
	return n
}

// countsJSON writes counts under their names, in order.
func countsJSON(counts []uint64, name func(int) string) []byte {
	b := []byte{'{'}
	for i, n := range counts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, strings.ReplaceAll(name(i), " ", "_"))
		b = append(b, ':')
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, '}')
}

// drops returns how many datagrams were dropped by a verdict.
func (c *ServerVerdicts) drops() uint64 {
	n := uint64(0)
	for v, of := range c {
		if limiter.Verdict(v).Dropped() {
			n += of
		}
	}
	return n
}

func (c *ClientVerdicts) late() uint64      { return c[core.DatagramLate] }
func (c *ClientVerdicts) duplicate() uint64 { return c[core.DatagramDuplicate] }

// invalid returns how many answers were not valid.
func (c *ClientVerdicts) invalid() uint64 {
	n := uint64(0)
	for v, of := range c {
		if !core.DatagramVerdict(v).Valid() {
			n += of
		}
	}
	return n
}

// sum returns how many datagrams there are, probes of clients that fail fast aside.
func (d *Datagrams) sum() uint64 {
	return d.First + d.Replay + d.Completion + d.Answer + d.Report
}
