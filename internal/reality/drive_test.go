package reality

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/precise"
	"github.com/weirhq/weir/internal/relay"
	"github.com/weirhq/weir/policy"
)

// order is what the client's process is told, in one line.
type order struct {
	Key, Zone, DNS, Policy string
	Start                  int64 // Unix ns: time 0 of the run
	Servers                int
	Dial                   []time.Duration // by client: when it is made, before time 0
	Requests               [][]ask
	Submits                []submit
}

// ask is a resource.
type ask struct {
	Bucket string
	Limit  int
	Window time.Duration
	Tokens int
}

// answer is what the client's process says at the end, in one line.
type answer struct {
	Ends []end
	Sent [core.SendKinds]uint64
	// Late is the 99th percentile of how much later than they were due requests were made.
	Late time.Duration
	// TooLate is how many of them were later than relay.TooLate.
	TooLate int
}

// end is that of a request.
type end struct {
	Outcome core.Outcome
	Server  ident.ServerID
	Replays int
	Took    time.Duration
}

// drive is the client's process.
func drive(in io.Reader, out io.Writer) error {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	// The sender sleeps in a system call, which takes one of Go's processors along.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	a, err := o.run()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func (o *order) run() (*answer, error) {
	start := time.Now().Add(time.Duration(o.Start - time.Now().UnixNano()))
	clients, err := o.dial(start)
	defer func() {
		for _, c := range clients {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	requests := o.requests()
	a := &answer{Ends: make([]end, len(o.Submits))}
	late := make([]time.Duration, len(o.Submits))
	var calls sync.WaitGroup
	for i, s := range o.Submits {
		due := start.Add(s.At)
		precise.SleepUntil(due)
		calls.Go(func() {
			asked := time.Now()
			late[i] = asked.Sub(due)
			d, err := clients[s.Client].Acquire(context.Background(), requests[s.Asks])
			a.Ends[i] = ended(d, err, time.Since(asked))
		})
		runtime.Gosched() // before this goroutine's processor sleeps
	}
	calls.Wait()
	a.Late = quantile(late, 0.99)
	for _, l := range late {
		if l > relay.TooLate {
			a.TooLate++
		}
	}
	for _, c := range clients {
		for kind, n := range c.Stats().Sent {
			a.Sent[kind] += n
		}
	}
	return a, nil
}

// dial makes the clients when it is time for each.
func (o *order) dial(start time.Time) ([]*weir.Client, error) {
	key, err := apikey.Parse(o.Key)
	if err != nil {
		return nil, err
	}
	asked, err := policy.Parse(o.Policy)
	if err != nil {
		return nil, err
	}
	resolver, err := discovery.NewDNS(o.DNS)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), start)
	defer cancel()
	clients, errs := make([]*weir.Client, len(o.Dial)), make([]error, len(o.Dial))
	var dialing sync.WaitGroup
	for i, before := range o.Dial {
		dialing.Go(func() {
			time.Sleep(time.Until(start.Add(-before)))
			clients[i], errs[i] = weir.Dial(ctx, weir.Config{Key: key, Zone: o.Zone, Resolver: resolver, Policy: asked})
			if errs[i] == nil && len(clients[i].Servers()) != o.Servers {
				errs[i] = fmt.Errorf("client %d knows %d of %d servers", i, len(clients[i].Servers()), o.Servers)
			}
		})
	}
	dialing.Wait()
	return clients, errors.Join(errs...)
}

func (o *order) requests() []weir.Request {
	all := make([]weir.Request, len(o.Requests))
	for i, asks := range o.Requests {
		for _, a := range asks {
			all[i].Resources = append(all[i].Resources, weir.Bucket(a.Bucket, a.Limit, a.Window).Take(a.Tokens))
		}
	}
	return all
}

func ended(d weir.Decision, err error, took time.Duration) end {
	e := end{Outcome: core.Rejected, Server: d.Server(), Replays: d.Profile().Replays, Took: took}
	switch {
	case errors.Is(err, weir.ErrTimeout):
		e.Outcome = core.TimedOut
	case err != nil:
		e.Outcome = core.SendFailed
	case d.Granted():
		e.Outcome = core.Granted
	}
	return e
}
