package sim

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/wire"
)

func (c *checker) checkClients() {
	c.that(len(c.s.Clients) > 0, "Clients", "there are none")
	taken := map[string]bool{}
	for i := range c.s.Servers {
		taken[c.s.Servers[i].Name] = true
	}
	for i := range c.s.Clients {
		g, at := &c.s.Clients[i], fmt.Sprintf("Clients[%d].", i)
		c.name(at+"Name", g.Name, taken)
		c.number(at+"Count", g.Count, 0, maxClients)
		c.between(at+"Skew", g.Skew, -maxSkew, maxSkew)
		c.checkArrivals(&g.Arrivals, at+"Arrivals.")
		c.that(len(g.Mix) > 0, at+"Mix", "it is empty: these clients have nothing to ask")
		for n := range g.Mix {
			c.checkChoice(&g.Mix[n], fmt.Sprintf("%sMix[%d]", at, n))
		}
		c.checkCore(i)
	}
	c.that(c.s.clients() <= maxClients, "Clients", "there are more than %d in all", maxClients)
}

func (c *checker) checkArrivals(a *Arrivals, at string) {
	c.between(at+"Start", a.Start, 0, maxLength)
	c.between(at+"Stop", a.Stop, 0, maxLength)
	c.dist(at+"Think", a.Think)
	switch a.Kind {
	case ArriveConstant, ArrivePoisson:
		c.between(at+"Every", a.Every, 1, MaxDuration)
	case ArriveBurst:
		c.between(at+"Every", a.Every, 1, MaxDuration)
		c.number(at+"Size", a.Size, 1, maxCount)
	case ArriveClosed:
		c.number(at+"Size", a.Size, 1, maxCount)
	case ArriveTrace:
		last := time.Duration(0)
		for i, t := range a.Times {
			c.that(t >= last && t <= maxLength, fmt.Sprintf("%sTimes[%d]", at, i), "%v is not from the one before, %v, to %v", t, last, maxLength)
			last = t
		}
	default:
		c.that(false, at+"Kind", "%d is none", a.Kind)
	}
}

func (c *checker) checkChoice(m *Choice, at string) {
	c.that(len(m.Take)+len(m.Guard) > 0, at, "it takes nothing and guards nothing")
	for i := range m.Take {
		name := m.Take[i].Bucket
		c.that(c.s.bucket(name) >= 0, fmt.Sprintf("%s.Take[%d].Bucket", at, i), "there is no bucket %q", name)
	}
	for i := range m.Guard {
		g, field := &m.Guard[i], fmt.Sprintf("%s.Guard[%d].", at, i)
		c.that(c.s.tracker(g.Tracker) >= 0, field+"Tracker", "there is no tracker %q", g.Tracker)
		c.milliseconds(field+"Threshold", g.Threshold, 0)
	}
	c.that(m.Work == "" || c.s.service(m.Work) >= 0, at+".Work", "there is no service %q", m.Work)
	size := wire.RequestSize(c.s.auth(), c.s.layout(), len(m.Guard), len(m.Take), 0)
	c.that(size <= wire.MaxDatagram, at, "it makes a datagram of %d bytes, more than %d; take less at once", size, wire.MaxDatagram)
}
