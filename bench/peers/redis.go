package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// gcra decides in Redis, at once for all who ask. A key holds the theoretical arrival time: when all that
// was taken so far would have been earned, in microseconds by the clock of Redis. Each request moves it by
// ARGV[1], and is denied if it would be more than ARGV[2] ahead of the clock. 1: granted.
const gcra = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + ARGV[1]
if tat - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000))
return 1`

// redisLink is a connection to Redis. Redis answers in the order in which it was asked.
type redisLink struct {
	conn         net.Conn
	in           *bufio.Reader
	out          []byte
	before, tail []byte // of a request, around its key

	mu      sync.Mutex
	waiting []int64 // of what was fired: when it was due, the oldest first
	idle    *sync.Cond
	reading bool
	failed  error
}

// redisBuffer is for answers: those to thousands of requests.
const redisBuffer = 1 << 14

func openRedis(ctx context.Context, job *Job) (link, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", job.Addr)
	if err != nil {
		return nil, err
	}
	l := &redisLink{conn: conn, in: bufio.NewReaderSize(conn, redisBuffer)}
	l.idle = sync.NewCond(&l.mu)
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	sha, err := l.load()
	if err != nil {
		l.close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	window := job.Window * int64(time.Millisecond/time.Microsecond)
	take := strconv.FormatFloat(float64(window)/float64(job.Limit), 'f', -1, 64)
	l.before = fmt.Appendf(nil, "*6\r\n$7\r\nEVALSHA\r\n$%d\r\n%s\r\n$1\r\n1\r\n", len(sha), sha)
	l.tail = fmt.Appendf(nil, "\r\n$%d\r\n%s\r\n$%d\r\n%d\r\n", len(take), take, len(strconv.FormatInt(window, 10)), window)
	return l, nil
}

// load has Redis remember the script, and returns what to call it.
func (l *redisLink) load() (sha string, err error) {
	if _, err = fmt.Fprintf(l.conn, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(gcra), gcra); err != nil {
		return "", err
	}
	head, err := l.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(head, "$") {
		return "", fmt.Errorf("redis takes no script: %s", strings.TrimSpace(head))
	}
	sha, err = l.in.ReadString('\n')
	return strings.TrimSpace(sha), err
}

// put writes a request for a key into the buffer.
func (l *redisLink) put(key int) {
	l.out = append(l.out, l.before...)
	l.out = fmt.Appendf(l.out, "$8\r\nk%07d", key%10_000_000)
	l.out = append(l.out, l.tail...)
}

// send sends what is in the buffer.
func (l *redisLink) send() error {
	_, err := l.conn.Write(l.out)
	l.out = l.out[:0]
	return err
}

// receive waits for an answer, and returns how many there are by then, at most so many.
func (l *redisLink) receive(answers []answer) (n int, wrongs error, err error) {
	for n < len(answers) {
		if n > 0 && !bytes.Contains(l.buffered(), []byte("\n")) {
			break
		}
		line, err := l.in.ReadSlice('\n')
		if err != nil {
			return n, wrongs, err
		}
		switch string(line) {
		case ":1\r\n":
			answers[n].verdict = granted
		case ":0\r\n":
			answers[n].verdict = denied
		default:
			answers[n].verdict = wrong
			wrongs = fmt.Errorf("redis: %s", bytes.TrimSpace(line))
		}
		n++
	}
	return n, wrongs, nil
}

// buffered is what was read and not yet looked at: as much as can hold an answer.
func (l *redisLink) buffered() []byte {
	const most = 256
	b, _ := l.in.Peek(min(most, l.in.Buffered()))
	return b
}

// probe has nothing to ask: Redis has answered, when it took the script.
func (l *redisLink) probe(context.Context) error { return nil }

func (l *redisLink) closed(r *run, inFlight int) error {
	var (
		due     = make([]int64, 0, 2*inFlight) // of those in flight, the oldest first
		answers = make([]answer, inFlight)
		n       = inFlight // to be sent
	)
	for {
		now := r.now()
		for range n {
			from, to := r.next(now)
			if from >= to {
				break
			}
			l.put(from)
			due = append(due, now)
		}
		if len(l.out) > 0 {
			if err := l.send(); err != nil {
				return fmt.Errorf("asking redis: %w", err)
			}
		}
		if len(due) == 0 {
			return nil
		}
		if err := l.conn.SetReadDeadline(time.Now().Add(drainGrace)); err != nil {
			return err
		}
		var wrongs, err error
		n, wrongs, err = l.receive(answers[:len(due)])
		if err != nil {
			return fmt.Errorf("reading from redis: %w", err)
		}
		for i := range n {
			answers[i].due = due[i]
		}
		r.record(answers[:n], wrongs)
		due = append(due[:0], due[n:]...)
	}
}

func (l *redisLink) fire(r *run, due []int64) error {
	l.mu.Lock()
	l.waiting = append(l.waiting, due...)
	failed, reading := l.failed, l.reading
	l.reading = true
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if !reading {
		go l.read(r)
	}
	for range due {
		from, _ := r.next(0)
		l.put(from)
	}
	return l.send()
}

// read takes in the answers to what was fired, until the connection is closed.
func (l *redisLink) read(r *run) {
	const most = 1024
	answers := make([]answer, most)
	for {
		n, wrongs, err := l.receive(answers)
		l.mu.Lock()
		n = min(n, len(l.waiting))
		for i := range n {
			answers[i].due = l.waiting[i]
		}
		l.waiting = l.waiting[n:]
		l.mu.Unlock()
		r.record(answers[:n], wrongs) // before others may take the run for over
		l.mu.Lock()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			if errors.Is(err, io.EOF) {
				err = errors.New("redis closed the connection")
			}
			l.failed = fmt.Errorf("reading from redis: %w", err)
		}
		l.idle.Broadcast()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (l *redisLink) drain(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 && l.failed == nil && ctx.Err() == nil {
		l.idle.Wait()
	}
	if l.failed != nil {
		return l.failed
	}
	return ctx.Err()
}

func (l *redisLink) close() { _ = l.conn.Close() }
