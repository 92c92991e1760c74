package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
)

// server is one r-server: the process that runs now, or the place of one that has ended.
type server struct {
	index  int
	spec   *Server
	addr   netip.AddrPort
	up     bool
	killed int // faults that keep it down
	paused int // faults that stop its workers
	stuck  int // of these, those that do so for good
	skew   time.Duration
	starts int
	id     ident.ServerID
	start  uint64 // Unix ms, by its clock: where its floor begins
	engine *limiter.Engine
	draws  stream
	flows  stream
	seeds  *entropy

	workers []worker
	waiting int // in all queues
}

// Servers listen at an address of their own for good: one that starts again is found where the
// last one was.
const serverPort = 29292

func serverAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), serverPort)
}

// serverAt returns the index of the server at an address, or -1.
func (w *World) serverAt(a netip.AddrPort) int {
	b := a.Addr().As4()
	if i := int(b[2])<<8 | int(b[3]); i < len(w.servers) && w.servers[i].addr == a {
		return i
	}
	return -1
}

func (w *World) addServers() error {
	w.servers = make([]server, len(w.s.Servers))
	for i := range w.servers {
		spec := &w.s.Servers[i]
		s := &w.servers[i]
		*s = server{
			index: i, spec: spec, addr: serverAddr(i), skew: spec.Skew,
			draws:   newStream(w.seed, "service times of "+spec.Name),
			flows:   newStream(w.seed, "flows to "+spec.Name),
			seeds:   newEntropy(w.seed, "tables of "+spec.Name),
			workers: make([]worker, max(1, spec.Workers)),
		}
		if err := w.run(s, epoch-int64(spec.Age)); err != nil {
			return fmt.Errorf("sim: server %s: %w", spec.Name, err)
		}
	}
	return nil
}

// run starts the server as a new process, with a new ID and no state, at a reading of its clock.
func (w *World) run(s *server, wall int64) error {
	id, err := ident.NewServerID(time.Unix(0, wall), uint32(s.index+s.starts*len(w.servers)))
	if err != nil {
		return err
	}
	s.starts++
	s.id, s.start, s.up = id, uint64(wall/nsPerMs), true
	return w.forget(s)
}

// forget gives the server an engine without state.
func (w *World) forget(s *server) error {
	c := w.s.engineConfig(s.spec)
	c.Start = s.start
	for i := 0; i < len(c.Seed); i += 8 {
		binary.LittleEndian.PutUint64(c.Seed[i:], s.seeds.Uint64())
	}
	e, err := limiter.New(c)
	if err != nil {
		return err
	}
	s.engine = e
	return nil
}

// engineConfig returns how a server's engine is made, but for what is its own.
func (s *Scenario) engineConfig(spec *Server) limiter.Config {
	q := s.quotas()
	return limiter.Config{
		RateBuckets:       min(q.RateBuckets, limiter.MaxRecords),
		LatencyServices:   min(q.LatencyServices, limiter.MaxRecords),
		LatencyBufferSize: min(q.LatencyBufferSize, limiter.MaxSamples),
		DedupTTLMax:       q.DedupTTL,
		WindowMax:         q.RateWindow,
		Skew:              uint32(spec.ClockSkew.Milliseconds()),
		Identities:        spec.Identities,
		AnswerBytes:       spec.AnswerBytes,
		Estimator:         spec.Estimator,
		Pacing:            spec.Pacing,
		Probe:             uint32(spec.Probe.Milliseconds()),
		Shadow:            spec.Shadow,
	}
}

// stop ends the process with everything that waits there.
func (w *World) stop(s *server) {
	s.up = false
	for i := range s.workers {
		k := &s.workers[i]
		if k.busy != nil {
			w.lose(k.busy, LostKilled)
		}
		for k.queue.n > 0 {
			w.lose(k.queue.pop(), LostKilled)
		}
		*k = worker{turn: k.turn + 1, queue: k.queue}
	}
	s.waiting = 0
	stats := s.engine.Stats()
	w.tellServer(s, &stats)
}

// tellServer tells that a server has started, or ended with an engine in such a state.
func (w *World) tellServer(s *server, engine *limiter.Stats) {
	r := w.tell(RecordServer)
	r.Server, r.ID, r.Up, r.Engine = s.index, s.id, s.up, engine
	w.hear(r)
}

// stuck returns how many datagrams wait for workers that are stopped for good.
func (w *World) stuck() (n int) {
	for i := range w.servers {
		s := &w.servers[i]
		if s.stuck == 0 {
			continue
		}
		n += s.waiting
		for k := range s.workers {
			if s.workers[k].busy != nil {
				n++
			}
		}
	}
	return n
}

// Servers take back what has expired, now and then.
const (
	sweepEvery = time.Second
	sweepSteps = 64
)

func (w *World) sweep() {
	for i := range w.servers {
		s := &w.servers[i]
		for s.up && s.paused == 0 && s.engine.Reclaim(w.engineTime(s), sweepSteps) {
		}
	}
	w.queue.plan(event{at: w.now + sweepEvery, kind: evSweep})
}
