// Package storm runs fuzz targets on mutations alone, for tests. Go's own fuzzing watches which
// code an input reaches, and pays for it with a process and a few ten microseconds an execution; a
// storm watches nothing, so that it runs as fast as the check does, and a billion executions take
// hours and not days. Both are needed: fuzzing finds the way into the code, and what it finds is
// what a storm mutates.
//
// A [Target] holds the seeds and the check that a fuzz function and a storm share:
//
//	func FuzzParse(f *testing.F)      { parseTarget(f).Fuzz(f) }
//	func TestStormParse(t *testing.T) { parseTarget(t).Storm(t) }
//
// Execution i of a seed is a function of the two and of the inputs there are to mutate, so a failure
// replays: it is told with the flags that repeat it, and its input is written into
// testdata/fuzz/<target>, as fuzzing would have done. Flags of the test binary:
//
//	-storm N          executions of each storm
//	-storm.seed N     another storm
//	-storm.from N     the execution to begin with, to replay one
//	-storm.corpus DIR more inputs to mutate, in DIR/<target>, such as fuzzing's cache of the package
//
// Only tests import it. A Target belongs to one goroutine.
package storm
