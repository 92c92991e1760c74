package limiter

// window is a limiter of one bucket: what the engine's buckets and everything they are compared with
// have in common.
type window interface {
	// take consumes tokens if they fit, and tells how many the window holds then.
	take(now int64, tokens uint32) (granted bool, live uint32)
}

// exactLog is a strict sliding window without any economy: every consumption in nanoseconds.
type exactLog struct {
	window int64
	rate   uint32
	times  []int64
	tokens []uint32
	live   uint32
}

func (l *exactLog) expire(now int64) {
	for len(l.times) > 0 && now-l.times[0] >= l.window {
		l.live -= l.tokens[0]
		l.times, l.tokens = l.times[1:], l.tokens[1:]
	}
}

func (l *exactLog) take(now int64, tokens uint32) (bool, uint32) {
	l.expire(now)
	if uint64(l.live)+uint64(tokens) > uint64(l.rate) {
		return false, l.live
	}
	l.add(now, tokens)
	return true, l.live
}

// add logs a consumption whether it fits or not.
func (l *exactLog) add(now int64, tokens uint32) {
	l.live += tokens
	if n := len(l.times); n > 0 && l.times[n-1] == now {
		l.tokens[n-1] += tokens
		return
	}
	l.times = append(l.times, now)
	l.tokens = append(l.tokens, tokens)
}

// engineBucket is a bucket of the engine.
type engineBucket struct {
	b    buckets
	key  bucketKey
	hash uint64
}

func newEngineBucket(windowMs, rate uint32) *engineBucket {
	e := &engineBucket{key: bucketKey{window: windowMs, rate: rate}}
	c := Config{RateBuckets: 1}
	e.b.limit, e.b.mem.limit = 1, c.groupLimit()
	e.hash = e.key.hash(e.b.hash)
	return e
}

func (e *engineBucket) take(now int64, tokens uint32) (bool, uint32) {
	for e.b.reclaim(now, tick(now)) {
	}
	i := e.b.find(&e.key, e.hash)
	live := e.b.live(i, now)
	d := demand{key: e.key, live: live}
	if d.deficit(tokens) > 0 || tokens == 0 {
		return tokens == 0, live
	}
	return true, e.b.consume(i, &e.key, e.hash, now, tokens)
}

// groupCount returns how many groups the bucket has.
func (e *engineBucket) groupCount() int {
	i := e.b.find(&e.key, e.hash)
	if i == 0 {
		return 0
	}
	return int(e.b.pool.at(i).count)
}

// wholeMs is the engine's bucket with its clock cut to milliseconds: the mistake that lets a window's
// tokens go up to a millisecond early.
type wholeMs struct{ *engineBucket }

func (w wholeMs) take(now int64, tokens uint32) (bool, uint32) {
	return w.engineBucket.take(now/nsPerMs*nsPerMs, tokens)
}

// subWindows counts in 128 fixed parts of a window. With 128 whole parts kept beside the current one
// it forgets a part when all of it is a window old: strict, and wasteful. With 127 it forgets a part
// when its beginning is.
type subWindows struct {
	part  int64 // ns
	kept  int64
	rate  uint32
	begun [129]int64 // which part the count is of
	count [129]uint32
}

func newSubWindows(windowMs, rate uint32, kept int64) *subWindows {
	return &subWindows{part: (int64(windowMs)*nsPerMs + 127) / 128, kept: kept, rate: rate}
}

func (s *subWindows) take(now int64, tokens uint32) (bool, uint32) {
	part := now / s.part
	live := uint32(0)
	for i := range s.begun {
		if s.begun[i] < part-s.kept {
			s.count[i] = 0
		}
		live += s.count[i]
	}
	if uint64(live)+uint64(tokens) > uint64(s.rate) {
		return false, live
	}
	s.begun[part%129] = part
	s.count[part%129] += tokens
	return true, live + tokens
}
