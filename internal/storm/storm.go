package storm

import (
	"flag"
	"path/filepath"
	"testing"
	"time"
)

// Executions is how many executions a storm has unless the flag says otherwise: enough to see that
// it works, in milliseconds.
const Executions = 3000

// epoch is how many executions share the state of a check that keeps some.
const epoch = 256

var (
	flagCount  = flag.Uint64("storm", Executions, "executions of each storm of mutations")
	flagSeed   = flag.Uint64("storm.seed", 1, "seed of storms")
	flagFrom   = flag.Uint64("storm.from", 0, "execution at which storms begin, to replay one")
	flagCorpus = flag.String("storm.corpus", "", "directory with a directory of inputs for each fuzz target, which storms mutate too")
)

// plan is which executions a storm is made of.
type plan struct {
	seed, from, to uint64
	corpora        []corpus
	failures       string // directory that a failing input is written into
}

// Storm is the body of the test that goes with the fuzz function: it runs the check on the seeds, on
// the inputs in testdata/fuzz, and on mutations of them all.
func (t *Target) Storm(tt *testing.T) {
	own := filepath.Join("testdata", "fuzz", t.name)
	p := plan{seed: *flagSeed, from: *flagFrom, to: *flagCount, corpora: []corpus{{own, false}}, failures: own}
	if *flagCorpus != "" {
		p.corpora = append(p.corpora, corpus{filepath.Join(*flagCorpus, t.name), true})
	}
	start := time.Now()
	t.storm(tt, &p)
	took := time.Since(start)
	tt.Logf("storm: %s: %d executions of seed %d in %.1f s, %.0f a second",
		t.name, p.to-p.from, p.seed, took.Seconds(), float64(p.to-p.from)/took.Seconds())
}

func (t *Target) storm(tb testing.TB, p *plan) {
	inputs, err := t.inputs(p.corpora)
	if err != nil {
		tb.Fatal(err)
	}
	m := newMutator(inputs, t.kinds, t.fields)
	f := failure{target: t, plan: p, inputs: len(inputs)}
	defer func() {
		if broken := recover(); broken != nil {
			f.tell(tb)
			panic(broken)
		}
		if tb.Failed() { // a check that fails at once ends this goroutine
			f.tell(tb)
		}
	}()
	// The epoch of the first execution may have begun before it.
	for i := p.from - p.from%epoch; i < p.to; i++ {
		if i%epoch == 0 {
			t.begin(tb)
		}
		in := m.input(p.seed, i)
		f.note(i, in)
		t.run(tb, in)
		if tb.Failed() {
			return
		}
	}
}

// inputs returns all there is to mutate.
func (t *Target) inputs(corpora []corpus) ([]input, error) {
	inputs := append([]input{}, t.seeds...)
	for _, c := range corpora {
		more, err := c.read(t.kinds)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, more...)
	}
	if len(inputs) == 0 {
		var empty input
		for _, k := range t.kinds {
			empty = append(empty, make([]byte, k.width))
		}
		inputs = append(inputs, empty)
	}
	return inputs, nil
}
