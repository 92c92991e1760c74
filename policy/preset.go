package policy

import "time"

// Default returns the policy of a client that is not told otherwise: the oldest
// server is preferred during round 0, in which a healthy one answers, and
// nobody is after that. Horizon 60 ms.
func Default() Policy {
	return Policy{
		Unit:               20 * time.Millisecond,
		Replays:            1,
		Gap:                Fixed(1),
		Preference:         List(1, 0),
		FinalReceive:       1,
		FinalPreference:    0,
		CompletionDelivery: true,
	}
}

// StrictOldest returns the policy that waits for the oldest server through the
// whole round before it takes another's answer: the most agreement between
// clients, and the slowest decisions while the oldest server is dead. Horizon
// 60 ms.
func StrictOldest() Policy {
	p := Default()
	p.Preference = Fixed(1)
	p.FinalPreference = 1
	return p
}

// OldestPreferred returns the policy that prefers the oldest server during the
// first half of every round. Horizon 60 ms.
func OldestPreferred() Policy {
	return Policy{
		Unit:               10 * time.Millisecond,
		Replays:            1,
		Gap:                Fixed(2),
		Preference:         Fixed(1),
		FinalReceive:       2,
		FinalPreference:    1,
		CompletionDelivery: true,
	}
}

// FastestValid returns the policy that takes the first valid answer, whoever
// gave it: the fastest decisions, and the least agreement between clients while
// servers differ. Horizon 60 ms.
func FastestValid() Policy {
	p := Default()
	p.Preference = Fixed(0)
	return p
}

// BoundedCollection returns the policy that collects answers during the first
// 5 ms of a round and takes the oldest server's among them. Its unit is a
// millisecond, so that the preference is the collection time. Horizon 60 ms.
func BoundedCollection() Policy {
	return Policy{
		Unit:               time.Millisecond,
		Replays:            1,
		Gap:                Fixed(20),
		Preference:         Fixed(5),
		FinalReceive:       20,
		FinalPreference:    5,
		CompletionDelivery: true,
	}
}

var presets = [...]struct {
	name string
	make func() Policy
}{
	{"default", Default},
	{"strict-oldest", StrictOldest},
	{"oldest-preferred", OldestPreferred},
	{"fastest-valid", FastestValid},
	{"bounded-collection", BoundedCollection},
}

// Preset returns the preset of this name, one of [PresetNames]. A preset is
// nothing but numbers.
func Preset(name string) (Policy, bool) {
	for _, p := range presets {
		if p.name == name {
			return p.make(), true
		}
	}
	return Policy{}, false
}

// PresetNames returns the names that [Preset] knows: default, strict-oldest,
// oldest-preferred, fastest-valid and bounded-collection.
func PresetNames() []string {
	names := make([]string, 0, len(presets))
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}
