package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// steeringCollector shows what steering does. Where there is none, it shows that.
type steeringCollector struct{ s *Server }

var (
	descAsked    = desc("steering_asked_total", "Answers that asked a client to come by another port, by the address and the worker that had too much to do.", "listen", "worker")
	descSteering = desc("steering_active", "1 while the loads of an address's workers are being evened out, else 0.", "listen")
)

// Describe implements prometheus.Collector.
func (c *steeringCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descAsked
	ch <- descSteering
}

// Collect implements prometheus.Collector.
func (c *steeringCollector) Collect(ch chan<- prometheus.Metric) {
	e := emitter{ch}
	for _, l := range c.s.listeners {
		e.gauge(descSteering, number(l.balancer != nil && l.balancer.active.Load()), l.addr.String())
		for i, w := range l.workers {
			asked := uint64(0)
			if w.flows != nil {
				asked = w.flows.asked.Load()
			}
			e.counter(descAsked, asked, l.addr.String(), strconv.Itoa(i))
		}
	}
}
