package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Run asks until the time is over, or the context's end, and then waits for answers that may still
// come. What was measured until the context's end is a result, too: [Result.Interrupted] says so.
// The error is of the configuration ([FieldError]), of the system's that refuses sockets, or of want
// of randomness.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	virtual := cfg.Stack != nil
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRun(cfg)
	r.virtual, r.cancel = virtual, stop
	for _, k := range cfg.Keys {
		t, err := newTenant(&cfg, k)
		if err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		r.tenants = append(r.tenants, t)
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// run is a load under way.
type run struct {
	cfg     Config
	picker  *picker
	tenants []*tenant
	flows   []*flow
	latency []*histogram // shared by the flows
	virtual bool         // time is a test's
	cancel  func()       // ends the run
	start   time.Time
	begin   int64        // ns after the start: requests count from here
	end     atomic.Int64 // to here

	readers  sync.WaitGroup
	senders  []*sender     // open loop
	asking   atomic.Bool   // not all that are to be sent are
	answered atomic.Uint64 // between begin and end
	unsent   atomic.Uint64
	unread   atomic.Uint64
	moves    atomic.Uint64
	failure  atomic.Pointer[error]
	refusal  atomic.Pointer[error] // the system's first
}

func newRun(cfg Config) *run {
	const most = 16
	return &run{cfg: cfg, picker: newPicker(cfg.Work.Buckets, cfg.Work.Zipf), latency: newHistograms(min(cfg.Flows, most))}
}

// instant is one reading of the clock.
type instant struct {
	mono   int64 // ns after the start
	wallNs int64 // Unix ns
}

// wall returns Unix milliseconds.
func (i instant) wall() uint64 { return uint64(i.wallNs / int64(time.Millisecond)) }

func (r *run) now() instant {
	t := r.cfg.Now()
	return instant{int64(t.Sub(r.start)), t.UnixNano()}
}

// counts reports whether what is due at a time is measured.
func (r *run) counts(due int64) bool { return due >= r.begin && due < r.end.Load() }

// fail ends the run with an error.
func (r *run) fail(err error) {
	r.failure.CompareAndSwap(nil, &err)
	r.stop()
	r.cancel()
}

// refused keeps the system's first refusal to send or to read.
func (r *run) refused(err error) { r.refusal.CompareAndSwap(nil, &err) }

// stop ends the asking now.
func (r *run) stop() {
	now := r.now().mono
	for end := r.end.Load(); now < end && !r.end.CompareAndSwap(end, now); end = r.end.Load() {
	}
}

// open opens all flows.
func (r *run) open() error {
	for i := range r.cfg.Flows {
		f, err := newFlow(r, i)
		if err != nil {
			for _, f := range r.flows {
				f.conn.Close()
			}
			return err
		}
		r.flows = append(r.flows, f)
	}
	return nil
}

// measure runs the load and sums up.
func (r *run) measure(ctx context.Context) (*Result, error) {
	r.start = r.cfg.Now()
	r.begin = int64(r.cfg.WarmUp)
	planned := r.begin + int64(r.cfg.For)
	r.end.Store(planned)
	r.asking.Store(true)
	if ctx.Err() != nil {
		r.stop()
	}
	for _, f := range r.flows {
		conn := f.conn
		r.readers.Go(func() { f.read(conn) })
	}
	var others sync.WaitGroup
	done := make(chan struct{})
	others.Go(func() { r.watch(ctx, done) })
	var cpu usage
	others.Go(func() { cpu = r.processors(ctx) })
	if r.cfg.Rate == 0 {
		r.fillLoops()
	} else {
		r.send()
	}
	r.asking.Store(false)
	r.readers.Wait()
	close(done)
	others.Wait()
	if err := r.failure.Load(); err != nil {
		return nil, *err
	}
	return r.result(r.end.Load() < planned, cpu), nil
}

// watch ends the run with the context, and tells how far it is.
func (r *run) watch(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var last uint64
	at := int64(0)
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			r.stop()
			return
		case <-ticker.C:
		}
		if r.cfg.Progress == nil {
			continue
		}
		now, n := r.now().mono, r.answered.Load()
		all := r.cfg.WarmUp + r.cfg.For
		r.cfg.Progress(Progress{min(time.Duration(now), all), all, n, float64(n-last) / time.Duration(now-at).Seconds()})
		last, at = n, now
	}
}

// fillLoops puts the first requests of closed loops in flight.
func (r *run) fillLoops() {
	for _, f := range r.flows {
		now := r.now()
		if now.mono >= r.end.Load() {
			return
		}
		f.mu.Lock()
		for i := range f.slots.len() {
			f.again(uint32(i), now)
		}
		f.flush(f.conn)
		f.mu.Unlock()
	}
}

// processors measures how much of the processors this process uses between begin and end.
func (r *run) processors(ctx context.Context) usage {
	r.sleepUntil(ctx, r.begin)
	before, from := used(), r.now().mono
	idle, all := machineTimes()
	r.sleepUntil(ctx, r.end.Load())
	u := usage{cpu: used() - before, of: time.Duration(r.now().mono - from)}
	u.idle, u.all = machineTimes()
	u.idle, u.all = u.idle-idle, u.all-all
	return u
}

func (r *run) sleepUntil(ctx context.Context, at int64) {
	t := time.NewTimer(time.Duration(at - r.now().mono))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// usage is processor time used in some time, by this process, and by nobody on this machine.
type usage struct {
	cpu, of   time.Duration
	idle, all float64
}
