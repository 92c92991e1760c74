package soak

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// queueEvery is how often it is asked how long processes waited for a processor.
const queueEvery = 10 * time.Millisecond

// queueWatch samples for how long the threads of processes waited for a
// processor.
type queueWatch struct {
	mu      sync.Mutex
	watched map[int]string // names by process ID
	samples []queueSample

	stop chan struct{}
	done chan struct{}
}

// queueSample is a wait that ended between two samples, or several.
type queueSample struct {
	at   time.Time
	name string
	took time.Duration
}

func watchQueue() *queueWatch {
	w := &queueWatch{watched: map[int]string{}, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// name says what a process is from now on.
func (w *queueWatch) name(pid int, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[pid] = name
}

// forget is told that a process is dead: its ID may be another's now.
func (w *queueWatch) forget(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, pid)
}

func (w *queueWatch) run() {
	defer close(w.done)
	last := map[int]time.Duration{}
	for {
		select {
		case <-time.After(queueEvery):
		case <-w.stop:
			return
		}
		w.mu.Lock()
		for pid, name := range w.watched {
			now := waited(pid)
			if before, known := last[pid]; known && now > before {
				w.samples = append(w.samples, queueSample{time.Now(), name, now - before})
			}
			last[pid] = now
		}
		w.mu.Unlock()
	}
}

func (w *queueWatch) end() {
	close(w.stop)
	<-w.done
}

// between says how long each process waited for a processor, all threads
// together, as far as it was known shortly after an instant.
func (w *queueWatch) between(from, to time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sums := map[string]time.Duration{}
	var order []string
	for _, s := range w.samples {
		if s.at.Before(from) || s.at.After(to.Add(3*queueEvery)) {
			continue
		}
		if sums[s.name] == 0 {
			order = append(order, s.name)
		}
		sums[s.name] += s.took
	}
	var text []string
	for _, name := range order {
		text = append(text, fmt.Sprintf("%s %v", name, sums[name].Round(time.Millisecond)))
	}
	return strings.Join(text, ", ")
}
