package weir

import (
	"errors"

	"github.com/weirhq/weir/wire"
)

// Report sends observations to every known server, once, in as many datagrams as
// they need. It waits for nothing but the sending, nothing answers, and what is
// lost on the way is lost. While others are sending it does not even wait for that: what is reported
// meanwhile leaves behind them, and shares datagrams. In layout 1 an observation whose BufferSize exceeds
// the key's quota is left out and counted.
//
// Errors, after which nothing was sent: [ErrNoServers] (a report never waits for
// discovery), [ErrClosed], [*ConfigError]. A datagram that cannot be sent is
// counted in [Client.Stats] and is no error.
func (c *Client) Report(obs ...Observation) error {
	r, ok := c.reports.Get().(*report)
	if !ok {
		r = new(report)
	}
	defer c.reports.Put(r)
	var err error
	if r.obs, err = appendObservations(r.obs[:0], obs, c.layout); err != nil {
		return c.refused(err)
	}
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	sends := false
	if c.core.CheckReport(r.obs) == nil {
		var joined bool
		if joined, sends = c.departures.joinReport(r.obs); joined {
			c.mu.Unlock()
			c.outboxes.Put(ob)
			return nil
		}
	}
	err = c.core.Report(now, r.obs)
	c.settle(now, ob)
	cause := c.discovery.err
	c.mu.Unlock()
	// It is left to nobody who began to send meanwhile: what Close finds in that queue is not sent. And who reports
	// faster than can be sent is slowed down.
	c.flush(ob)
	if sends {
		c.departures.leave()
	}
	if err == nil {
		return nil
	}
	if err = translate(err); errors.Is(err, ErrNoServers) {
		return noServers(cause)
	}
	return err
}

// report is what encoding a report works with.
type report struct{ obs []wire.Observation }
