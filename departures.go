package weir

import (
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// departures lets what is submitted while another's is being sent leave together: what is for one server then
// goes in one system call, and in one buffer where the system can do that, and reports share datagrams. Who
// finds nobody sending sends at once; nobody waits for company.
type departures struct {
	mu       sync.Mutex
	sending  bool               // somebody is
	ended    bool               // the client is closed, so everybody sends for himself
	queue    []*outbox          // of those who came meanwhile
	reported []wire.Observation // meanwhile, by how many reports
	reports  int

	atWork chan struct{} // full while what was taken is sent, so that Close does not come in between

	handOver chan struct{} // to the goroutine that sends what is queued

	// What follows belongs to that goroutine.
	taken     []*outbox
	observed  []wire.Observation // what was taken of reports
	reporters int                // how many reports that was
	letters   []letter
	together  outbox // what was taken, as one
}

// letter is a datagram and where it goes out.
type letter struct {
	udp.Datagram
	post
}

// depart does what ob holds, as flush does, or leaves it to others who are sending. It is for callers who wait
// for an answer, and so leave no more behind than themselves.
func (c *Client) depart(ob *outbox) {
	if len(ob.posts) == 0 || len(ob.wake)+len(ob.hangUp)+len(ob.retired) > 0 {
		c.flush(ob) // what ends something is left to nobody
		return
	}
	d := &c.departures
	if d.join(ob) {
		return
	}
	c.flush(ob)
	d.leave()
}

// join leaves ob to who is sending, and reports false if nobody is: then the caller does, and leaves.
func (d *departures) join(ob *outbox) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sending && !d.ended {
		d.queue = append(d.queue, ob)
		return true
	}
	d.sending = true
	return false
}

// mostReported is how many observations wait for who is sending. Who reports more sends for himself.
const mostReported = 4096

// joinReport leaves observations to who is sending. If nobody is, the caller is from now on: it sends, and leaves. If
// there is no room for more it sends beside who is. It is called with the client's lock held, so that Close finds what it
// left.
func (d *departures) joinReport(obs []wire.Observation) (joined, sends bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.sending || d.ended:
		d.sending = true
		return false, true
	case len(d.reported)+len(obs) > mostReported:
		return false, false
	}
	d.reported = append(d.reported, obs...)
	d.reports++
	return true, false
}

// leave tells that the caller has sent what was its own. What came meanwhile is handed over, so that
// nobody is kept from his own answer.
func (d *departures) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
	case len(d.queue)+d.reports == 0:
		d.sending = false
	default:
		d.handOver <- struct{}{} // it has room, for only who is sending hands over
	}
}

// take takes what is queued; if that is nothing, nobody is sending any more. After the last time nothing
// is queued.
func (d *departures) take(last bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = d.ended || last
	d.taken, d.queue = d.queue, d.taken[:0]
	d.observed, d.reported = d.reported, d.observed[:0]
	d.reporters, d.reports = d.reports, 0
	d.sending = len(d.taken)+d.reporters > 0
	return d.sending
}

// takeReports takes what is left of reports, and how many they were, for Close.
func (d *departures) takeReports() (obs []wire.Observation, reports int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	obs, reports = d.reported, d.reports
	d.reported, d.reports = nil, 0
	return obs, reports
}

// sendQueued is the goroutine that sends what is handed over.
func (c *Client) sendQueued() {
	d := &c.departures
	for {
		select {
		case <-d.handOver:
			for c.sendNext(false) { // until nobody has come meanwhile
			}
		case <-c.ctx.Done():
			c.sendNext(true) // its sockets are closed, or about to be, and are let go of
			return
		}
	}
}

// sendNext sends what is queued, and reports whether that was anything.
func (c *Client) sendNext(last bool) bool {
	d := &c.departures
	d.atWork <- struct{}{}
	defer func() { <-d.atWork }()
	if !d.take(last) {
		return false
	}
	if d.reporters > 0 {
		c.writeReport()
	}
	c.sendTaken()
	return true
}

// writeReport makes one report of those that were taken, and puts it before what else was taken: a guard of a
// request that was made after a report should know of it.
func (c *Client) writeReport() {
	d := &c.departures
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	if c.core.Report(now, d.observed) != nil { // closed, without servers or without randomness by now
		c.counts.lostReports += uint64(d.reporters)
	}
	c.settle(now, ob)
	c.mu.Unlock()
	d.taken = slices.Insert(d.taken, 0, ob)
}

// sendTaken sends what was taken, and what is for one server next to each other.
func (c *Client) sendTaken() {
	d := &c.departures
	for _, ob := range d.taken {
		for i := range ob.posts {
			d.letters = append(d.letters, letter{ob.datagrams[i], ob.posts[i]})
		}
	}
	slices.SortStableFunc(d.letters, func(a, b letter) int { return a.Peer.Compare(b.Peer) })
	all := &d.together
	for i := range d.letters {
		all.datagrams = append(all.datagrams, d.letters[i].Datagram)
		all.posts = append(all.posts, d.letters[i].post)
	}
	c.discharge(all)
	// The buffers are those of whom they were taken from.
	clear(all.datagrams)
	clear(d.letters)
	all.datagrams, d.letters = all.datagrams[:0], d.letters[:0]
	for i, ob := range d.taken {
		clear(ob.posts)
		ob.posts = ob.posts[:0]
		c.flush(ob)
		d.taken[i] = nil
	}
}
