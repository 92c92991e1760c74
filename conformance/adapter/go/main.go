// Adapter is Weir's own client behind the line protocol of conformance/README.md,
// for the conformance runner:
//
//	go run ./conformance/cmd/weir-conformance -- go run ./conformance/adapter/go
//
// It uses what any program may import, and is the example to start from for a
// client that is safe for concurrent calls.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// adapter is a client and where it says what it decides.
type adapter struct {
	client *weir.Client
	calls  sync.WaitGroup

	mu  sync.Mutex
	out io.Writer
}

// serve does what the lines of in want, until they end or say quit.
func serve(in io.Reader, out io.Writer) error {
	a := &adapter{out: out}
	defer a.end()
	a.say(conformance.Reply{Event: "hello", Name: "weir", Auth: []string{"aes", "cookie", "none"}, Layouts: []int{2, 1}, Has: []string{conformance.NeedDeliveryDelay, conformance.NeedParseKey}})
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, conformance.MaxLine)
	for lines.Scan() {
		c, err := conformance.ParseCommand(lines.Bytes())
		if err != nil {
			return err
		}
		switch {
		case c.Cmd == "quit":
			return nil
		case c.Cmd == "parse_key":
			a.say(parseKey(&c))
		case c.Cmd == "configure":
			a.say(a.configure(&c))
		case a.client == nil:
			return fmt.Errorf("%q comes before configure", c.Cmd)
		case c.Cmd == "submit":
			a.calls.Go(func() { a.say(a.submit(&c)) })
		case c.Cmd == "report":
			a.say(a.report(&c))
		}
	}
	return lines.Err()
}

func (a *adapter) say(r conformance.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = conformance.WriteLine(a.out, r) // whoever does not read does not want to know
}

// end closes the client, which ends the calls that wait.
func (a *adapter) end() {
	if a.client != nil {
		_ = a.client.Close()
	}
	a.calls.Wait()
}

// configure makes the client, and waits a moment until it knows servers.
func (a *adapter) configure(c *conformance.Command) conformance.Reply {
	key, err := readKey(c)
	if err != nil {
		return conformance.Reply{Event: "refused", Field: "key", Text: err.Error()}
	}
	p, err := policy.Parse(c.Policy.Text())
	if err != nil {
		return refused(err)
	}
	resolver, err := discovery.NewDNS(c.Nameserver)
	if err != nil {
		return conformance.Reply{Event: "error", Text: err.Error()}
	}
	cfg := weir.Config{Key: key, Domain: c.Domain, Resolver: resolver, Policy: p, Layout: wire.Layout(c.Layout)}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client, err := weir.Dial(ctx, cfg)
	if errors.Is(err, weir.ErrNoServers) {
		client, err = weir.New(cfg) // it goes on looking
	}
	if err != nil {
		return refused(err)
	}
	a.client = client
	return conformance.Reply{Event: "ready"}
}

func readKey(c *conformance.Command) (apikey.Key, error) {
	if c.Legacy {
		return apikey.ParseAny(c.Key)
	}
	return apikey.Parse(c.Key)
}

// parseKey says what is in a key.
func parseKey(c *conformance.Command) conformance.Reply {
	key, err := readKey(c)
	if err != nil {
		return conformance.Reply{Event: "refused", Field: "key", Text: err.Error()}
	}
	return conformance.Reply{Event: "parsed", Key: conformance.KeyFieldsOf(key)}
}

func refused(err error) conformance.Reply {
	r := conformance.Reply{Event: "refused", Text: err.Error()}
	var field *policy.FieldError
	if errors.As(err, &field) {
		r.Field = field.Field
	}
	return r
}

// submit asks, and waits for the decision.
func (a *adapter) submit(c *conformance.Command) conformance.Reply {
	var r weir.Request
	for _, x := range c.Resources {
		r.Resources = append(r.Resources, weir.Bucket(x.Bucket, int(x.Limit), ms(x.Window)).Take(int(x.Tokens)))
	}
	for _, g := range c.Guards {
		tracker := weir.Tracker(g.Tracker, weir.TrackerOptions{
			TTL: ms(g.TTL), MaxSamples: int(g.MaxSamples), BufferSize: int(g.BufferSize), MinSamples: int(g.MinSamples),
		})
		r.Guards = append(r.Guards, tracker.Below(ms(g.Threshold)))
	}
	r.Label = c.Label
	d, err := a.client.Acquire(context.Background(), r)
	if err != nil {
		return conformance.Reply{Event: "failed", ID: c.ID, Reason: reason(err), Text: err.Error()}
	}
	reply := conformance.Reply{Event: "decided", ID: c.ID, Granted: d.Granted(), Server: d.Server().String()}
	for _, g := range d.Guards() {
		reply.Guards = append(reply.Guards, conformance.GuardResult{Latency: uint32(g.Latency.Milliseconds()), Passed: g.Passed})
	}
	for _, x := range d.Resources() {
		reply.Resources = append(reply.Resources, conformance.ResourceResult{Deficit: x.Deficit})
	}
	return reply
}

func reason(err error) string {
	switch {
	case errors.Is(err, weir.ErrTimeout):
		return "timeout"
	case errors.Is(err, weir.ErrNoServers):
		return "no_servers"
	}
	return "other"
}

func (a *adapter) report(c *conformance.Command) conformance.Reply {
	var all []weir.Observation
	for _, o := range c.Observations {
		tracker := weir.Tracker(o.Tracker, weir.TrackerOptions{
			TTL: ms(o.TTL), MaxSamples: int(o.MaxSamples), BufferSize: int(o.BufferSize), MinSamples: int(o.MinSamples),
		})
		all = append(all, tracker.Took(ms(o.Latency)))
	}
	if err := a.client.Report(all...); err != nil {
		return conformance.Reply{Event: "failed", ID: c.ID, Reason: reason(err), Text: err.Error()}
	}
	return conformance.Reply{Event: "reported", ID: c.ID}
}

func ms(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }
