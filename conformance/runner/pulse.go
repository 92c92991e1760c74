package runner

import (
	"sync"
	"time"
)

// pulse measures how late this process's own timers are: what the machine does to
// the runner it does to the client as well.
type pulse struct {
	done  chan struct{}
	beats sync.WaitGroup
	worst time.Duration
}

const beat = 5 * time.Millisecond

func startPulse() *pulse {
	p := &pulse{done: make(chan struct{})}
	p.beats.Go(func() {
		timer := time.NewTimer(beat)
		defer timer.Stop()
		for due := time.Now().Add(beat); ; due = time.Now().Add(beat) {
			timer.Reset(beat)
			select {
			case <-p.done:
				return
			case <-timer.C:
				p.worst = max(p.worst, time.Since(due))
			}
		}
	})
	return p
}

// stop returns the worst lateness.
func (p *pulse) stop() time.Duration {
	close(p.done)
	p.beats.Wait()
	return p.worst
}
