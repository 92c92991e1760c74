package udp

// burstStride is how far apart the buffers of bursts are: the longest burst, and a little, so that their
// beginnings do not all fall on the same lines of a processor's cache.
const burstStride = 1<<16 + 320

// held is what a reader of bursts has read and not handed out yet.
type held struct {
	headers int // of the batch
	header  int // the next
	at      int // bytes into it
	what    control
}

// takeBursts reads as take does, and takes bursts apart. What does not fit into ds is handed out next
// time, without a system call.
func (r *batchReader) takeBursts(ds []Datagram, now bool) (int, error) {
	if n := r.handOut(ds); n > 0 {
		return n, nil
	}
	r.fillBursts(len(ds))
	err := r.receive(min(len(ds), r.most), now)
	r.left = held{headers: r.n}
	if err != nil {
		return 0, err
	}
	return r.handOut(ds), nil
}

// fillBursts makes headers for n datagrams at most.
func (r *batchReader) fillBursts(n int) {
	if r.space == nil {
		r.space = make([]byte, r.most*burstStride)
	}
	for i := range min(n, r.most) {
		r.batch.buffer(i, r.space[i*burstStride:], 1<<16)
		r.prepare(i)
	}
}

// handOut copies what is held into ds: copying is little beside what a datagram costs otherwise.
func (r *batchReader) handOut(ds []Datagram) (n int) {
	l := &r.left
	for ; n < len(ds) && l.header < l.headers; n++ {
		h := &r.batch.headers[l.header]
		all := r.space[l.header*burstStride:][:h.Len]
		if l.at == 0 {
			l.what = readControl(r.batch.controls[l.header][:h.Hdr.Controllen])
			if l.what.size > 0 && l.what.size < len(all) {
				r.came.Add(uint64((len(all) + l.what.size - 1) / l.what.size))
			} else {
				l.what.size = len(all)
			}
		}
		end := min(l.at+l.what.size, len(all))
		d := &ds[n]
		d.N = copy(d.Buf, all[l.at:end])
		d.Peer = r.peer(l.header)
		d.take(l.what, r.drops)
		if l.at = end; end == len(all) {
			l.header, l.at = l.header+1, 0
		}
	}
	return n
}

// ahead reads what is there past a goroutine that waits in read, which another reader serves.
func (r *batchReader) ahead(ds []Datagram) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.handOut(ds); n > 0 {
		return n
	}
	r.fillBursts(len(ds))
	r.n, r.now, r.err = min(len(ds), r.most), true, nil
	err := r.raw.Control(r.once)
	if err != nil || r.err != nil {
		r.n = 0
	}
	r.left = held{headers: r.n}
	return r.handOut(ds)
}
