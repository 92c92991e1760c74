package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schedule gives a number of units for each round: B or P of docs/policy.md.
// Make one with [Fixed], [Linear], [Exponential], [List] or [ParseSchedule]; the
// zero value is no schedule and fails [Schedule.Validate]. Schedules are equal
// when == says so.
type Schedule struct {
	kind                kind
	initial, step, peak uint32 // step is the factor of an exponential schedule
	// list holds the values of a list, four bytes each: a string, so that a
	// Schedule shares no memory with its maker and can be compared.
	list string
}

type kind uint8

const (
	unset kind = iota
	fixed
	linear
	exponential
	list
)

// maxList is the longest useful list: a value for each possible round.
const maxList = math.MaxUint16 + 1

// Fixed returns the schedule that is v units in every round.
func Fixed(v uint32) Schedule {
	return Schedule{kind: fixed, initial: v}
}

// Linear returns the schedule that begins with initial units and grows by step
// units a round until it stays at peak. step is at least 1, initial at most
// peak.
func Linear(initial, step, peak uint32) Schedule {
	return Schedule{kind: linear, initial: initial, step: step, peak: peak}
}

// Exponential returns the schedule that begins with initial units and is
// multiplied by factor each round until it stays at peak. factor is at least 2,
// initial at most peak.
func Exponential(initial, factor, peak uint32) Schedule {
	return Schedule{kind: exponential, initial: initial, step: factor, peak: peak}
}

// List returns the schedule that takes the values in turn, in units, and then
// repeats the last one. It needs between 1 and 65536 values.
func List(values ...uint32) Schedule {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return Schedule{kind: list, list: string(b)}
}

// ParseSchedule reads a schedule's text form: "fixed:1", "linear:1:1:4"
// (initial, step, max), "exponential:1:2:8" (initial, factor, max) or
// "list:1,0". Numbers are decimal, from 0 to 1<<32-1. The schedule that is
// returned passes [Schedule.Validate].
func ParseSchedule(text string) (Schedule, error) {
	name, rest, _ := strings.Cut(text, ":")
	sep, want := ":", 3
	switch name {
	case "fixed":
		want = 1
	case "linear", "exponential":
	case "list":
		sep, want = ",", 0
	default:
		return Schedule{}, fmt.Errorf("policy: %q is no schedule; write fixed:V, linear:INITIAL:STEP:MAX, exponential:INITIAL:FACTOR:MAX or list:V,V,…", text)
	}
	values, err := parseUnits(rest, sep)
	if err != nil {
		return Schedule{}, fmt.Errorf("policy: schedule %q: %w", text, err)
	}
	if want != 0 && len(values) != want {
		return Schedule{}, fmt.Errorf("policy: schedule %q has %d numbers; %s takes %d", text, len(values), name, want)
	}
	var s Schedule
	switch name {
	case "fixed":
		s = Fixed(values[0])
	case "linear":
		s = Linear(values[0], values[1], values[2])
	case "exponential":
		s = Exponential(values[0], values[1], values[2])
	case "list":
		s = List(values...)
	}
	if err := s.check(); err != nil {
		return Schedule{}, fmt.Errorf("policy: schedule %q: %w", text, err)
	}
	return s, nil
}

// String returns the text form that [ParseSchedule] reads, or "unset" for the
// zero value.
func (s Schedule) String() string {
	switch s.kind {
	case fixed:
		return fmt.Sprintf("fixed:%d", s.initial)
	case linear:
		return fmt.Sprintf("linear:%d:%d:%d", s.initial, s.step, s.peak)
	case exponential:
		return fmt.Sprintf("exponential:%d:%d:%d", s.initial, s.step, s.peak)
	case list:
		var b strings.Builder
		b.WriteString("list:")
		for i := range s.listLen() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatUint(s.listAt(i), 10))
		}
		return b.String()
	}
	return "unset"
}

// Validate reports why the schedule is none, on its own: it is unset, a linear
// one does not grow, an exponential one has a factor below 2, one of them begins
// above its max, or a list has no value or too many.
func (s Schedule) Validate() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("policy: schedule %v: %w", s, err)
	}
	return nil
}

// At returns the units of round k, which is at least 0. The result is below
// 1<<32; it is 0 for a schedule that fails [Schedule.Validate].
func (s Schedule) At(k int) uint64 {
	if s.check() != nil {
		return 0
	}
	switch s.kind {
	case linear:
		return s.linearAt(k)
	case exponential:
		return s.exponentialAt(k)
	case list:
		return s.listAt(min(k, s.listLen()-1))
	}
	return uint64(s.initial)
}

func (s Schedule) linearAt(k int) uint64 {
	// Dividing instead of multiplying cannot overflow, however large k is.
	if room := uint64(s.peak - s.initial); uint64(k) > room/uint64(s.step) {
		return uint64(s.peak)
	}
	return uint64(s.initial) + uint64(k)*uint64(s.step)
}

func (s Schedule) exponentialAt(k int) uint64 {
	v := uint64(s.initial)
	if v == 0 {
		return 0
	}
	// The value at least doubles, so that this ends after 32 turns.
	for range k {
		v *= uint64(s.step)
		if v >= uint64(s.peak) {
			return uint64(s.peak)
		}
	}
	return v
}

func (s Schedule) listLen() int {
	return len(s.list) / 4
}

func (s Schedule) listAt(i int) uint64 {
	b := s.list[4*i : 4*i+4]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
}

var (
	errUnset     = errors.New("no schedule is set; use Fixed, Linear, Exponential or List")
	errStep      = errors.New("the step is 0; use a fixed schedule for one that does not grow")
	errFactor    = errors.New("the factor is below 2; use a fixed schedule for one that does not grow")
	errBeginning = errors.New("the initial value is above the max")
	errEmptyList = errors.New("the list is empty; name at least one value")
	errLongList  = fmt.Errorf("the list has more than %d values, one for each possible round", maxList)
)

// check is Validate without words around the reason, and without an allocation.
func (s Schedule) check() error {
	switch {
	case s.kind == unset:
		return errUnset
	case s.kind == linear && s.step == 0:
		return errStep
	case s.kind == exponential && s.step < 2:
		return errFactor
	case s.initial > s.peak && (s.kind == linear || s.kind == exponential):
		return errBeginning
	case s.kind == list && s.list == "":
		return errEmptyList
	case s.kind == list && s.listLen() > maxList:
		return errLongList
	}
	return nil
}

func parseUnits(text, sep string) ([]uint32, error) {
	var values []uint32
	for field := range strings.SplitSeq(text, sep) {
		v, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no decimal number from 0 to %d", field, uint32(math.MaxUint32))
		}
		if len(values) == maxList {
			return nil, errLongList
		}
		values = append(values, uint32(v))
	}
	return values, nil
}
