package roundtrip

import (
	"math/rand/v2"
	"time"
)

// schedule is when the questions to one address are due. Each has an equal part of the
// time, and comes at random in the first half of it, so that no beat of the machine's or
// the server's own meets all of them. The addresses' parts begin one after the other.
type schedule struct {
	part   time.Duration
	offset time.Duration
	warm   int // questions of the warm-up
	all    int
}

func newSchedule(cfg *Config, i, paths int) schedule {
	s := schedule{part: time.Second / time.Duration(cfg.Rate)}
	s.offset = s.part / 2 * time.Duration(i) / time.Duration(paths)
	s.warm = int(cfg.WarmUp / s.part)
	s.all = s.warm + max(1, int(cfg.For/s.part))
	return s
}

// due returns when a question is due, after the begin.
func (s *schedule) due(question int) time.Duration {
	return time.Duration(question)*s.part + s.offset + rand.N(s.part/2)
}
