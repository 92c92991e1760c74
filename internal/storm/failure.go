package storm

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// failure is the execution under way, to be told of if it fails. The check may change its input, so
// a copy is kept.
type failure struct {
	target *Target
	plan   *plan
	inputs int
	index  uint64
	input  input
}

// note keeps an execution in mind.
func (f *failure) note(index uint64, in input) {
	f.index = index
	if f.input == nil {
		f.input = make(input, len(in))
	}
	for i, b := range in {
		f.input[i] = append(f.input[i][:0], b...)
	}
}

// tell says which execution failed and how to repeat it, and writes its input where fuzzing and the
// next storm find it.
func (f *failure) tell(tb testing.TB) {
	text := encodeFile(f.input, f.target.kinds)
	sum := sha256.Sum256(text)
	path, err := writeCorpus(f.plan.failures, "storm-"+hex.EncodeToString(sum[:8]), text)
	if err != nil {
		tb.Logf("storm: %s: the input cannot be written: %v", f.target.name, err)
	}
	tb.Logf("storm: %s: execution %d of seed %d failed, of %d inputs; its input is in %s\n%s"+
		"If that passes by itself, what came before it counts; without the new file, repeat it with -storm.seed=%d -storm.from=%d -storm=%d",
		f.target.name, f.index, f.plan.seed, f.inputs, path, text, f.plan.seed, f.index-f.index%epoch, f.index+1)
}
