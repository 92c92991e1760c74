package doctor

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// quiet is how long nothing is told: most examinations are over by then.
const quiet = 2 * time.Second

// progress tells what is being done, to someone who waits.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	doing string
	late  bool
	timer *time.Timer
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	p.timer = time.AfterFunc(quiet, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = true
		p.tell()
	})
	return p
}

// now begins something.
func (p *progress) now(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = fmt.Sprintf(format, args...)
	if p.late {
		p.tell()
	}
}

func (p *progress) tell() {
	if p.out != nil && p.doing != "" {
		fmt.Fprintf(p.out, "weir: %s…\n", p.doing)
	}
}

// stop ends it. Nothing is told afterwards.
func (p *progress) stop() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = nil
}
