package load

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// deafness is how long a socket that was just changed ignores advice to change it, as clients' are.
const deafness = int64(time.Second)

// reader reads one socket of a flow.
type reader struct {
	*flow
	conn  udp.Conn
	judge judge
	leave int64 // ns after the start: when a socket that was replaced is left; 0 if it is not replaced
}

// read takes answers until the run is over, or this socket is not the flow's any more.
func (f *flow) read(conn udp.Conn) {
	defer conn.Close()
	r := &reader{flow: f, conn: conn}
	in := buffers(f.cfg.batch(), wire.MaxDatagram+1, wire.MaxDatagram+1)
	tick := f.cfg.tick()
	for n, wake := 0, int64(0); ; {
		now := f.now()
		if n > 0 {
			r.took(in[:n], now)
		}
		if now.mono >= wake {
			if !r.look(now) {
				return
			}
			wake = now.mono + int64(tick)
			_ = conn.SetReadDeadline(time.Now().Add(tick))
		}
		if n > 0 {
			// Let others have their turn. Meanwhile more answers come, which then need no system call more,
			// nor a wait: some 8 % less processor time a request.
			runtime.Gosched()
		}
		var err error
		n, err = conn.Read(in)
		switch {
		case udp.Closed(err):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			wake = 0
		case err != nil:
			f.unread.Add(1)
			f.refused(err)
		}
	}
}

// took takes a batch of answers. In a closed loop others are asked in their place.
func (r *reader) took(in []udp.Datagram, now instant) {
	f := r.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	move, answered := false, uint64(0)
	over := now.mono >= f.end.Load()
	for k := range in {
		i, v := r.judge.take(f, &in[k], now)
		if v == waiting {
			continue
		}
		move = move || r.judge.move
		if v == inTime {
			answered++
		}
		if f.cfg.Rate == 0 && !over {
			f.again(i, now)
		}
	}
	if now.mono >= f.begin && !over && answered > 0 {
		f.answered.Add(answered)
	}
	if f.cfg.Rate == 0 {
		f.flush(f.conn)
	}
	if move && f.cfg.Steer && !over && r.conn == f.conn && now.mono >= f.deaf {
		f.steer(now)
	}
}

// again asks once more in a slot, in a closed loop.
func (f *flow) again(i uint32, now instant) {
	if f.n == len(f.out) {
		f.flush(f.conn)
	}
	if err := f.ask(i, now.mono, now); err != nil {
		f.fail(err)
	}
}

// steer moves to the next port. The old socket is read until nothing that was asked by it is waited for.
func (f *flow) steer(now instant) {
	f.deaf = now.mono + deafness
	conn, err := udp.ListenNext(f.cfg.Stack, f.conn.LocalAddr(), f.cfg.socketOptions())
	if err != nil {
		return // such as when every port is taken; as clients do, it stays
	}
	f.moves.Add(1)
	f.conn = conn
	f.readers.Go(func() { f.read(conn) })
}

// look gives up what is lost, and reports whether this socket is to be read on.
func (r *reader) look(now instant) bool {
	f := r.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	over := now.mono >= f.end.Load()
	for i, ok := f.slots.oldest(); ok && now.mono-f.slots.all[i].due > int64(f.cfg.Timeout); i, ok = f.slots.oldest() {
		f.lose(i)
		if f.cfg.Rate == 0 && !over {
			f.again(i, now)
		}
	}
	if f.cfg.Rate == 0 {
		f.flush(f.conn)
	}
	if _, waits := f.slots.oldest(); over && !waits && !f.asking.Load() || f.failure.Load() != nil {
		return false
	}
	if r.conn == f.conn {
		return true
	}
	if r.leave == 0 {
		r.leave = now.mono + int64(f.cfg.Timeout)
	}
	return now.mono < r.leave
}

// lose gives up a request.
func (f *flow) lose(i uint32) {
	f.slots.free(i)
	if f.slots.all[i].counts {
		f.tally.lost++
		f.tally.latency.record(int64(f.cfg.Timeout))
	}
}
