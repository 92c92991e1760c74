package simcompare

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// Own is the name that stands for each scenario's own policy.
const Own = "scenario"

// maxName is the longest name of a policy, in characters.
const maxName = 60

// A Named is a policy and what it is called.
type Named struct {
	Name   string
	Policy policy.Policy // the zero value is the scenario's own
}

// under returns the scenario with the policy in place of its own.
func (n Named) under(s *sim.Scenario) *sim.Scenario {
	if n.Policy.IsZero() {
		return s
	}
	changed := *s
	changed.Policy = n.Policy
	return &changed
}

// Presets returns all presets, the default first.
func Presets() []Named {
	var all []Named
	for _, name := range policy.PresetNames() {
		p, _ := policy.Preset(name)
		all = append(all, Named{name, p})
	}
	return all
}

// ParseNamed reads policies: each a preset's name, [Own], NAME=TEXT, or a policy's text, which then
// is its name, too. Names must differ.
func ParseNamed(texts []string) ([]Named, error) {
	var all []Named
	seen := make(map[string]bool)
	for _, text := range texts {
		n, err := parseNamed(strings.Join(strings.Fields(text), " "))
		if err != nil {
			return nil, err
		}
		if seen[n.Name] {
			return nil, fmt.Errorf("%q is there twice; name one of them otherwise, as in NAME=TEXT", n.Name)
		}
		seen[n.Name] = true
		all = append(all, n)
	}
	return all, nil
}

func parseNamed(whole string) (Named, error) {
	if whole == Own {
		return Named{Name: Own}, nil
	}
	name, text, ok := strings.Cut(whole, "=")
	if !ok || strings.Contains(name, " ") || isField(name) {
		name, text = whole, whole
	}
	if name == "" || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Named{}, fmt.Errorf("%q: a policy's name is 1 to %d printable characters; give one, as in NAME=TEXT", name, maxName)
	}
	if strings.TrimSpace(text) == "" {
		return Named{}, fmt.Errorf("%q has no policy's text behind it, such as 'default unit=5ms'", whole)
	}
	p, err := policy.Parse(text)
	switch {
	case err != nil && text != whole:
		return Named{}, fmt.Errorf("%q: %w", name, err)
	case err != nil:
		return Named{}, fmt.Errorf("%q: %w (or give it a name, as in NAME=TEXT)", whole, err)
	}
	return Named{name, p}, nil
}

// isField tells whether a word is a field of policies, so that what follows is its value and not a
// policy of this name.
func isField(word string) bool {
	for field := range strings.FieldsSeq(policy.Default().String()) {
		if name, _, _ := strings.Cut(field, "="); name == word {
			return true
		}
	}
	return false
}
