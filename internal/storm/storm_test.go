package storm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// record is a test that may fail without failing this one.
type record struct {
	testing.TB
	failed bool
	log    strings.Builder
}

func (r *record) Failed() bool                 { return r.failed }
func (r *record) Logf(format string, a ...any) { fmt.Fprintf(&r.log, format+"\n", a...) }
func (r *record) Errorf(format string, a ...any) {
	r.failed = true
	r.Logf(format, a...)
}

func (r *record) Fatalf(format string, a ...any) {
	r.Errorf(format, a...)
	runtime.Goexit()
}

// play runs a storm to its end and returns what became of it, and what it panicked with.
func play(tb testing.TB, target *Target, p *plan) (r *record, broken any) {
	r = &record{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { broken = recover() }()
		target.storm(r, p)
	}()
	<-done
	return r, broken
}

// unlikely is a target that fails for a very few inputs: those with three certain bytes in a row and
// a count that is right.
func unlikely(fail func(tb testing.TB)) *Target {
	t := New2("FuzzUnlikely", func(tb testing.TB, b []byte, n uint16) {
		if int(n) == len(b) && bytes.Contains(b, []byte{9, 8, 7}) {
			clear(b) // what the check does to its input is not told
			fail(tb)
		}
	})
	t.Add([]byte{1, 9, 8, 1, 1}, uint16(3))
	t.Add([]byte{7, 1, 1}, uint16(0))
	return t
}

// A failure of any kind is told with what repeats it, and its input is kept where it is found again.
func TestFailureReplays(t *testing.T) {
	for name, fail := range map[string]func(tb testing.TB){
		"at once": func(tb testing.TB) { tb.Fatalf("boom") },
		"later":   func(tb testing.TB) { tb.Errorf("boom") },
		"panic":   func(testing.TB) { panic("boom") },
	} {
		dir := t.TempDir()
		p := &plan{seed: 5, to: 1_000_000, failures: dir}
		r, broken := play(t, unlikely(fail), p)
		if (name == "panic") != (broken == "boom") || (name != "panic") != r.failed {
			t.Fatalf("%s: failed %v, panic %v", name, r.failed, broken)
		}
		var seed, from, to uint64
		at := strings.Index(r.log.String(), "-storm.seed=")
		if at < 0 {
			t.Fatalf("%s: told:\n%s", name, r.log.String())
		}
		if _, err := fmt.Sscanf(r.log.String()[at:], "-storm.seed=%d -storm.from=%d -storm=%d", &seed, &from, &to); err != nil {
			t.Fatal(err)
		}
		if to < 3 || to-from > epoch {
			t.Errorf("%s: replay from %d to %d", name, from, to)
		}
		again, broken := play(t, unlikely(fail), &plan{seed: seed, from: from, to: to, failures: dir})
		if !again.failed && broken == nil {
			t.Errorf("%s: the replay passes", name)
		}
		files, _ := os.ReadDir(dir)
		if len(files) != 1 {
			t.Fatalf("%s: %d files", name, len(files))
		}
		// The kept input is among the first of the next storm.
		third, broken := play(t, unlikely(fail), &plan{seed: seed + 1, to: 3, corpora: []corpus{{dir, false}}, failures: dir})
		if !third.failed && broken == nil {
			t.Errorf("%s: the kept input passes", name)
		}
	}
}

// The same executions have the same inputs, whatever was run before them; another seed has others.
func TestInputsFollowFromSeedAndIndex(t *testing.T) {
	sums := func(seed, from, to uint64) (lines []string) {
		target := New3("FuzzThree", func(_ testing.TB, b []byte, s string, yes bool) {
			lines = append(lines, fmt.Sprintf("%x %x %v", b, s, yes))
		})
		target.Add([]byte("some bytes"), "a text", true)
		target.Add([]byte{}, "", false)
		if r, broken := play(t, target, &plan{seed: seed, from: from, to: to}); r.failed || broken != nil {
			t.Fatal(r.log.String(), broken)
		}
		return lines
	}
	all := sums(1, 0, 2*epoch)
	if !slices.Equal(sums(1, epoch+7, 2*epoch), all[epoch:]) {
		t.Error("a replay has other inputs")
	}
	if slices.Equal(sums(2, 0, 2*epoch)[2:], all[2:]) {
		t.Error("two seeds have the same inputs")
	}
	distinct := map[string]bool{}
	for _, l := range all {
		distinct[l] = true
	}
	if len(distinct) < len(all)*3/4 {
		t.Errorf("%d of %d inputs are distinct", len(distinct), len(all))
	}
}

// State is made anew at the beginning of every epoch, and only there.
func TestEpochsAreFresh(t *testing.T) {
	begun, runs := 0, 0
	target := New("FuzzState", func(tb testing.TB, _ uint8) {
		if runs++; begun != 1+(runs-1)/epoch {
			tb.Errorf("execution %d in epoch %d", runs, begun)
		}
	})
	target.Fresh(func(testing.TB) { begun++ })
	if r, _ := play(t, target, &plan{seed: 1, to: 3*epoch + 1}); r.failed || begun != 4 {
		t.Errorf("%d epochs: %s", begun, r.log.String())
	}
}

// What is written as an input is read as the same, and is what fuzzing writes.
func TestCorpusFiles(t *testing.T) {
	target := New3("FuzzX", func(testing.TB, uint8, uint64, string) {})
	for _, c := range []byte{0, '\'', '"', '\\', 'a', 0x7f, 0x80, 0xff} {
		target.Add(c, uint64(c)<<40, string([]byte{c, '\n', c}))
	}
	for _, in := range target.seeds {
		back, err := decodeFile(encodeFile(in, target.kinds), target.kinds)
		if err != nil || !slices.EqualFunc(back, in, bytes.Equal) {
			t.Errorf("%q comes back as %q, %v", in, back, err)
		}
	}
	want := "go test fuzz v1\nbyte('\\u0080')\nuint64(140737488355328)\nstring(\"\\x80\\n\\x80\")\n"
	if got := string(encodeFile(target.seeds[6], target.kinds)); got != want {
		t.Errorf("wrote\n%s, want\n%s", got, want)
	}
	mixed := New3("FuzzY", func(testing.TB, []byte, bool, uint16) {})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good":      "go test fuzz v1\n[]byte(\"a\\x00\")\nbool(true)\nuint16(300)\n",
		"heading":   "go test fuzz v2\n[]byte(\"a\")\nbool(true)\nuint16(300)\n",
		"too few":   "go test fuzz v1\n[]byte(\"a\")\nbool(true)\n",
		"type":      "go test fuzz v1\nstring(\"a\")\nbool(true)\nuint16(300)\n",
		"too large": "go test fuzz v1\n[]byte(\"a\")\nbool(true)\nuint16(65536)\n",
		"open":      "go test fuzz v1\n[]byte(\"a\")\nbool(true)\nuint16(3\n",
	} {
		path := filepath.Join(dir, "one")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if old, err := (corpus{dir, true}).read(mixed.kinds); err != nil || (len(old) == 1) != (name == "good") {
			t.Errorf("%s, among what fuzzing once found: %d inputs, %v", name, len(old), err)
		}
		got, err := corpus{dir, false}.read(mixed.kinds)
		if (err == nil) != (name == "good") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "good" && (len(got) != 1 || !slices.EqualFunc(got[0], input{{'a', 0}, {1}, {0x2c, 1}}, bytes.Equal)) {
			t.Errorf("read %q", got)
		}
	}
}

// Every way to change an input happens, lengths stay bounded, and the inputs to mutate stay as they
// are.
func TestMutations(t *testing.T) {
	base := []byte("0123456789abcdef0123456789abcdef")
	other := []byte("GHIJKLMNOPQRSTUVWXYZ")
	var flipped, longer, shorter, repeated, spliced, cut, huge int
	target := New("FuzzX", func(_ testing.TB, b []byte) {
		differ := 0
		for i := range min(len(b), len(base)) {
			if b[i] != base[i] {
				differ++
			}
		}
		switch {
		case len(b) > longest:
			t.Errorf("%d bytes", len(b))
		case len(b) == len(base) && differ == 1:
			flipped++
		case len(b) < len(base) && differ == 0:
			cut++
		}
		if len(b) == longest {
			huge++
		}
		if len(b) > len(base) {
			longer++
		}
		if len(b) < len(base) {
			shorter++
		}
		if bytes.Count(b, base[3:9]) > 2 {
			repeated++
		}
		if bytes.Contains(b, base[4:8]) && bytes.Contains(b, other[4:8]) {
			spliced++
		}
	})
	target.Add(base)
	target.Add(other)
	if r, broken := play(t, target, &plan{seed: 1, to: 50_000}); r.failed || broken != nil {
		t.Fatal(r.log.String(), broken)
	}
	for name, n := range map[string]int{
		"flipped": flipped, "longer": longer, "shorter": shorter, "repeated": repeated, "spliced": spliced, "cut": cut,
	} {
		if n < 500 {
			t.Errorf("%s: %d of 50000", name, n)
		}
	}
	if string(target.seeds[0][0]) != "0123456789abcdef0123456789abcdef" || !bytes.Equal(target.seeds[1][0], other) {
		t.Error("a seed was changed")
	}
	if huge > 100 {
		t.Errorf("%d inputs are as long as may be", huge)
	}
}

// Lengths at the places that a target aims at are changed alone, and together with what they count.
func TestAimedMutations(t *testing.T) {
	seed := append([]byte{0x52, 0x54, 40, 0, 0, 0, 0, 0, 0, 0, 1, 0}, make([]byte, 28)...)
	var alone, grown, shrunk int
	target := New("FuzzX", func(_ testing.TB, b []byte) {
		size := u16(b, 2)
		switch {
		case len(b) == 40 && size != 40:
			alone++
		case len(b) > 40 && size == len(b):
			grown++
		case len(b) < 40 && size == len(b) && len(b) >= 12:
			shrunk++
		}
	})
	target.Add(seed)
	target.Aim(PDU)
	if r, broken := play(t, target, &plan{seed: 1, to: 20_000}); r.failed || broken != nil {
		t.Fatal(r.log.String(), broken)
	}
	if alone < 200 || grown < 40 || shrunk < 25 {
		t.Errorf("of 20000 inputs %d have a wrong size, %d are longer and %d shorter with the right one", alone, grown, shrunk)
	}
}

// The places of fields are those of the format.
func TestPlaces(t *testing.T) {
	pdu := make([]byte, 12+2*36+28+8)
	pdu[8], pdu[10] = 2, 1
	got := PDU(pdu, nil)
	for _, want := range []int{0, 2, 8, 10, 12 + 36*2 - 4, 12 + 36*2 + 28 - 2, 12 + 36*2 + 28, 12 + 36*2 + 30, 12 + 36*2 + 32} {
		if !slices.Contains(got, want) {
			t.Errorf("no field at %d", want)
		}
	}
	for auth, size := range map[byte]int{0x4e: 4, 0x43: 36, 0x45: 32} {
		d := make([]byte, 40+size)
		d[2], d[40], d[41] = 40, auth, 0x41
		if auth == 0x45 {
			d[40], d[41] = 0x41, 0x45
		}
		places := Datagram(slices.Concat(d, pdu), nil)
		for _, want := range append([]int{0, 2, 40, 42}, 40+size, 40+size+2, 40+size+10) {
			if !slices.Contains(places, want) {
				t.Errorf("mode %x: no field at %d", auth, want)
			}
		}
	}
	for _, short := range [][]byte{nil, {1}, {1, 2, 3}} {
		Datagram(short, nil) // does not panic
	}
}

// A seed that the check does not take is a mistake of the test.
func TestWrongSeeds(t *testing.T) {
	target := New2("FuzzX", func(testing.TB, []byte, uint8) {})
	for _, args := range [][]any{{[]byte{}}, {"text", uint8(1)}, {[]byte{}, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is taken", args)
				}
			}()
			target.Add(args...)
		}()
	}
}
