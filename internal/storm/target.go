package storm

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// Arg is what a check may take: some of what a fuzz target may.
type Arg interface {
	[]byte | string | bool | uint8 | uint16 | uint64
}

// Target is a check, under the name of its fuzz function, and the inputs that it begins with.
type Target struct {
	name    string
	kinds   []kind
	seeds   []input
	added   [][]any // the seeds as fuzzing takes them
	fields  Fields
	fresh   func(tb testing.TB)
	run     func(tb testing.TB, in input)
	fuzzing any // what testing.F.Fuzz takes
}

// input is one argument list. Every argument is its bytes: numbers in little-endian order, and a
// bool is the lowest bit of one byte.
type input [][]byte

// kind is the type of an argument.
type kind struct {
	name  string
	width int // bytes of a number, 0 for what has any length
}

// New makes a target whose check takes one argument. The check may change it, and keeps nothing of
// it. It fails by the methods of tb.
func New[A Arg](name string, check func(tb testing.TB, a A)) *Target {
	t := &Target{name: name, kinds: []kind{kindOf[A]()}}
	t.run = func(tb testing.TB, in input) { check(tb, argument[A](in[0])) }
	t.fuzzing = func(tt *testing.T, a A) {
		t.begin(tt)
		check(tt, a)
	}
	return t
}

// New2 is [New] for two arguments.
func New2[A, B Arg](name string, check func(tb testing.TB, a A, b B)) *Target {
	t := &Target{name: name, kinds: []kind{kindOf[A](), kindOf[B]()}}
	t.run = func(tb testing.TB, in input) { check(tb, argument[A](in[0]), argument[B](in[1])) }
	t.fuzzing = func(tt *testing.T, a A, b B) {
		t.begin(tt)
		check(tt, a, b)
	}
	return t
}

// New3 is [New] for three arguments.
func New3[A, B, C Arg](name string, check func(tb testing.TB, a A, b B, c C)) *Target {
	t := &Target{name: name, kinds: []kind{kindOf[A](), kindOf[B](), kindOf[C]()}}
	t.run = func(tb testing.TB, in input) {
		check(tb, argument[A](in[0]), argument[B](in[1]), argument[C](in[2]))
	}
	t.fuzzing = func(tt *testing.T, a A, b B, c C) {
		t.begin(tt)
		check(tt, a, b, c)
	}
	return t
}

// Add adds a seed: the check's arguments, in its types. Others are a panic.
func (t *Target) Add(args ...any) {
	if len(args) != len(t.kinds) {
		panic(fmt.Sprintf("storm: %s takes %d arguments and was given %d", t.name, len(t.kinds), len(args)))
	}
	var in input
	for i, a := range args {
		k, b := encode(a)
		if k != t.kinds[i] {
			panic(fmt.Sprintf("storm: argument %d of %s is a %T and must be a %s", i+1, t.name, a, t.kinds[i].name))
		}
		in = append(in, b)
	}
	t.seeds = append(t.seeds, in)
	t.added = append(t.added, args)
}

// Fresh has f called before each execution of fuzzing and each [epoch] of a storm: there a check
// that keeps state begins anew, so that a failure can be repeated.
func (t *Target) Fresh(f func(tb testing.TB)) { t.fresh = f }

// Aim tells where the first argument's lengths and counts are, which are worth more mutations than
// other bytes.
func (t *Target) Aim(f Fields) { t.fields = f }

// Fuzz is the body of the fuzz function.
func (t *Target) Fuzz(f *testing.F) {
	for _, args := range t.added {
		f.Add(args...)
	}
	f.Fuzz(t.fuzzing)
}

func (t *Target) begin(tb testing.TB) {
	if t.fresh != nil {
		t.fresh(tb)
	}
}

func kindOf[A Arg]() kind {
	var zero A
	k, _ := encode(zero)
	return k
}

// encode returns an argument's bytes, which are a copy. A type that is none is a panic.
func encode(a any) (kind, []byte) {
	switch a := a.(type) {
	case []byte:
		return kind{"[]byte", 0}, append([]byte{}, a...)
	case string:
		return kind{"string", 0}, []byte(a)
	case bool:
		b := byte(0)
		if a {
			b = 1
		}
		return kind{"bool", 1}, []byte{b}
	case uint8:
		return kind{"byte", 1}, []byte{a}
	case uint16:
		return kind{"uint16", 2}, binary.LittleEndian.AppendUint16(nil, a)
	case uint64:
		return kind{"uint64", 8}, binary.LittleEndian.AppendUint64(nil, a)
	}
	panic(fmt.Sprintf("storm: a %T is no argument", a))
}

// argument returns what the bytes of an argument stand for. A byte slice is b itself.
func argument[A Arg](b []byte) A {
	var a A
	switch p := any(&a).(type) {
	case *[]byte:
		*p = b
	case *string:
		*p = string(b)
	case *bool:
		*p = b[0]&1 == 1
	case *uint8:
		*p = b[0]
	case *uint16:
		*p = binary.LittleEndian.Uint16(b)
	case *uint64:
		*p = binary.LittleEndian.Uint64(b)
	}
	return a
}
