package core

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirhq/weir/wire"
)

// reportDatagram is one datagram of a latency report on its way to everybody.
type reportDatagram struct {
	members  *snapshot
	datagram []byte
}

// reporter is what building reports works with, kept to allocate nothing.
type reporter struct {
	free   []*reportDatagram
	staged []*reportDatagram  // of the report that is being built
	batch  []wire.Observation // of the datagram that is being built
}

// Report wants latency observations sent, once, to every server known now, in as
// many datagrams as they need, each under a fresh identity. Nothing is kept of
// obs, nothing answers, and no request is touched. A datagram goes to every
// endpoint of a server, which counts an identity once.
//
// In layout 1 an observation whose BufferSize is over the key's quota is left
// out and counted in [Stats]. Errors, after which nothing is sent: [ErrClosed],
// *[FieldError] for no observations, [ErrNoServers] (a core with a domain then
// looks again by itself), or of the entropy source.
func (c *Core) Report(now Time, obs []wire.Observation) error {
	t := c.advance(now)
	if err := c.CheckReport(obs); err != nil {
		if errors.Is(err, ErrNoServers) {
			c.forceDiscovery(t)
		}
		return err
	}
	before, leftOut := c.stats.Observations, c.stats.ObservationsLeftOut
	err := c.stageReports(obs)
	if err != nil {
		c.stats.Observations, c.stats.ObservationsLeftOut = before, leftOut
	}
	for _, d := range c.reporter.staged {
		if err != nil {
			c.freeReport(d)
			continue
		}
		c.sends.push(pendingSend{kind: SendReport, report: d, to: math.MaxUint64})
	}
	c.reporter.staged = c.reporter.staged[:0]
	return err
}

// CheckReport returns the error that Report would, unless that is of the entropy source, and changes nothing:
// for who gathers observations before a report. At another time the answer may be another.
func (c *Core) CheckReport(obs []wire.Observation) error {
	switch {
	case c.closed:
		return ErrClosed
	case len(obs) == 0:
		return &FieldError{"Observations", "there are none; a report has at least one"}
	case len(c.members.servers) == 0:
		return ErrNoServers
	}
	return nil
}

// stageReports seals the datagrams of a report.
func (c *Core) stageReports(obs []wire.Observation) error {
	room := wire.MaxObservations(c.credential.Auth(), c.cfg.Layout)
	quota := c.cfg.Key.Quotas().LatencyBufferSize
	r := &c.reporter
	r.batch = r.batch[:0]
	for i := range obs {
		if c.cfg.Layout == wire.Layout1 && obs[i].BufferSize > quota {
			c.stats.ObservationsLeftOut++
			continue
		}
		r.batch = append(r.batch, obs[i])
		if len(r.batch) == room {
			if err := c.stageReport(); err != nil {
				return err
			}
		}
	}
	if len(r.batch) == 0 {
		return nil
	}
	return c.stageReport()
}

// stageReport seals the batch into a datagram and empties it.
func (c *Core) stageReport() error {
	r := &c.reporter
	uid, err := c.newIdentity()
	if err != nil {
		return err
	}
	d := c.newReport()
	r.staged = append(r.staged, d)
	c.header = wire.Header{UniqueID: uid, Timestamp: uint64(c.wall)}
	d.datagram, err = c.credential.AppendReport(d.datagram, c.sealer, &c.header, c.cfg.Layout, r.batch)
	if err != nil {
		return fmt.Errorf("core: encoding a report: %w", err)
	}
	c.stats.Observations += uint64(len(r.batch))
	r.batch = r.batch[:0]
	return nil
}

func (c *Core) newReport() *reportDatagram {
	r := &c.reporter
	if n := len(r.free); n > 0 {
		d := r.free[n-1]
		r.free = r.free[:n-1]
		d.members = c.members
		return d
	}
	return &reportDatagram{members: c.members}
}

func (c *Core) freeReport(d *reportDatagram) {
	d.members, d.datagram = nil, d.datagram[:0]
	c.reporter.free = append(c.reporter.free, d)
}
