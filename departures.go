package weir

import (
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/udp"
)

// departures lets requests that are submitted while another is being sent leave together: what is for one
// server then goes in one system call, and in one buffer where the system can do that. Who finds nobody
// sending sends at once; nobody waits for company.
type departures struct {
	mu      sync.Mutex
	sending bool      // somebody is
	ended   bool      // the client is closed, so everybody sends for himself
	queue   []*outbox // of those who came meanwhile

	handOver chan struct{} // to the goroutine that sends what is queued

	// What follows belongs to that goroutine.
	taken    []*outbox
	letters  []letter
	together outbox // what was taken, as one
}

// letter is a datagram and where it goes out.
type letter struct {
	udp.Datagram
	post
}

// depart does what ob holds, as flush does, or leaves it to others who are sending. It is for a caller who
// waits for an answer anyway.
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

// leave tells that the caller has sent what was its own. What came meanwhile is handed over, so that
// nobody is kept from his own answer.
func (d *departures) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
	case len(d.queue) == 0:
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
	d.sending = len(d.taken) > 0
	return d.sending
}

// sendQueued is the goroutine that sends what is handed over.
func (c *Client) sendQueued() {
	d := &c.departures
	for {
		select {
		case <-d.handOver:
			for d.take(false) {
				c.sendTaken()
			}
		case <-c.ctx.Done():
			if d.take(true) {
				c.sendTaken() // its sockets are closed, or about to be, and are let go of
			}
			return
		}
	}
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
