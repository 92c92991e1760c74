package runner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/conformance"
)

// A Client is a client under test: two streams of lines, and an end.
type Client interface {
	io.Writer // to its standard input
	io.Reader // from its standard output
	// End closes the input and returns when nothing of the client is left. Reads
	// then end.
	End()
}

// spoken is one line of a client under test, or why there are no more.
type spoken struct {
	at    time.Time
	reply conformance.Reply
	err   error
}

// listenTo reads a client's lines until it ends, or ctx does.
func listenTo(ctx context.Context, c io.Reader, lines chan<- spoken) {
	say := func(s spoken) bool {
		s.at = time.Now()
		select {
		case lines <- s:
			return true
		case <-ctx.Done():
			return false
		}
	}
	scanner := bufio.NewScanner(c)
	scanner.Buffer(make([]byte, 0, 4096), conformance.MaxLine)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		r, err := conformance.ParseReply(scanner.Bytes())
		if err != nil {
			err = fmt.Errorf("%w: %.200q", err, scanner.Text())
		}
		if !say(spoken{reply: r, err: err}) {
			return
		}
	}
	err := scanner.Err()
	if err == nil {
		err = io.EOF
	}
	say(spoken{err: err})
}
