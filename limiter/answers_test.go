package limiter

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
	"pgregory.net/rapid"
)

// TestAnswersRing keeps answers of random shape in small rings: what is still there is what was put,
// it is always the newest part, and memory stays within the bound.
func TestAnswersRing(t *testing.T) {
	type kept struct {
		at, until int64
		pos       uint64
		granted   bool
		ans       string
	}
	rapid.Check(t, func(t *rapid.T) {
		var a answers
		bytes := rapid.IntRange(1, 1<<rapid.IntRange(1, 18).Draw(t, "bits")).Draw(t, "bytes")
		a.resize(bytes, 0)
		now := int64(0)
		var all []kept
		lost := 0 // answers that went in time
		gone := 0 // answers that went
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += rapid.Int64Range(0, 20).Draw(t, "passed")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				for a.reclaim(now) {
				}
			case 1:
				bytes = rapid.IntRange(1, 1<<14).Draw(t, "new bytes")
				a.resize(bytes, now)
			default:
				ans := wire.Answer{
					Latencies: rapid.SliceOfN(rapid.Uint32(), 0, 31).Draw(t, "latencies"),
					Rates:     rapid.SliceOfN(rapid.Uint32(), 0, 3).Draw(t, "rates"),
				}
				ans.Deficits = make([]uint16, len(ans.Rates))
				for i := range ans.Deficits {
					ans.Deficits[i] = rapid.Uint16().Draw(t, "deficit")
				}
				k := kept{at: now, until: now + rapid.Int64Range(1, 300).Draw(t, "ttl"), granted: rapid.Bool().Draw(t, "granted"), ans: fmt.Sprint(ans)}
				k.pos = a.put(now, k.until, k.granted, &ans)
				all = append(all, k)
			}
			for ; gone < len(all); gone++ {
				var ans wire.Answer
				if _, ok := a.get(all[gone].pos, &ans); ok {
					break
				}
				if now < all[gone].until {
					lost++
				}
			}
			for _, k := range all[gone:] {
				var ans wire.Answer
				granted, ok := a.get(k.pos, &ans)
				ans.Latencies, ans.Rates, ans.Deficits = slices.Clip(ans.Latencies), slices.Clip(ans.Rates), slices.Clip(ans.Deficits)
				if !ok || granted != k.granted || fmt.Sprint(ans) != k.ans {
					t.Fatalf("answer at %d: %v %t %t, want %v %t", k.pos, ans, granted, ok, k.ans, k.granted)
				}
			}
			if a.held != len(all)-gone {
				t.Fatalf("%d answers are held, %d are there", a.held, len(all)-gone)
			}
			if int(a.owed) != lost {
				t.Fatalf("%d answers are counted as lost in time, want %d", a.owed, lost)
			}
			if most := max(bytes, 2*a.pageSize); a.memory > most {
				t.Fatalf("%d bytes, more than %d", a.memory, most)
			}
		}
	})
}

// TestLongestAnswer fits the longest answer that a datagram can ask for into the smallest page.
func TestLongestAnswer(t *testing.T) {
	longest := 0
	for guards := range 256 {
		for resources := range 256 {
			if wire.RequestSize(credential.Auth(), wire.Layout2, guards, resources, 0) > wire.MaxDatagram {
				break
			}
			longest = max(longest, answerHead+4*guards+6*resources)
		}
	}
	if longest > answerPageMin {
		t.Errorf("an answer can be %d bytes, a page %d", longest, answerPageMin)
	}
	var a answers
	a.resize(1, 0)
	var ans wire.Answer
	for range 40 {
		ans.Latencies = append(ans.Latencies, 1)
		ans.Rates = append(ans.Rates, 2)
		ans.Deficits = append(ans.Deficits, 3)
	}
	for range 10 {
		pos := a.put(0, 1, true, &ans)
		var got wire.Answer
		if granted, ok := a.get(pos, &got); !granted || !ok || len(got.Rates) != 40 {
			t.Fatal("an answer that was just put is not there")
		}
	}
}

// TestAnswersReclaim gives a page back when the last of its answers is over, whichever that is.
func TestAnswersReclaim(t *testing.T) {
	var a answers
	a.resize(1024, 0)
	var ans wire.Answer
	a.put(0, 20, true, &ans)
	a.put(0, 10, true, &ans)
	if a.reclaim(19) || a.held != 2 {
		t.Errorf("of 2 answers, one of which may be asked for, %d are held", a.held)
	}
	if !a.reclaim(20) || a.held != 0 || a.owed != 0 {
		t.Errorf("%d answers are held when all are over, %d went early", a.held, a.owed)
	}
}
