package scenario

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/sim/scenarios"
)

// placed matches an error that says where.
var placed = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*: .`)

// parseTarget holds that whatever is taken is a valid scenario, and that a mistake has a place.
func parseTarget() *storm.Target {
	target := storm.New("FuzzParse", func(t testing.TB, text string) {
		f, err := ParseFile([]byte(text), beside)
		if err != nil {
			if f != nil {
				t.Fatal("a scenario beside an error")
			}
			if !placed.MatchString(err.Error()) && !strings.HasPrefix(err.Error(), "the file is empty") && !strings.HasPrefix(err.Error(), "not YAML") {
				t.Fatalf("the mistake has no place: %v", err)
			}
			return
		}
		f.setName("it")
		for _, s := range append(f.Variants, f.Scenario) {
			if err := s.Validate(); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
		}
	})
	for _, name := range List() {
		data, err := scenarios.Files.ReadFile(name + ending)
		if err != nil {
			panic(err)
		}
		target.Add(string(data))
	}
	target.Add(whole)
	target.Add("network: &a [*a]\nvariants: {x: *a}")
	return target
}

func FuzzParse(f *testing.F)      { parseTarget().Fuzz(f) }
func TestStormParse(t *testing.T) { parseTarget().Storm(t) }
