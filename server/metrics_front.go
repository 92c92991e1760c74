package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// frontCollector shows the counters of the workers.
type frontCollector struct{ s *Server }

var (
	descReceived = desc("worker_datagrams_total", "Datagrams read, by the address and the worker that has a socket there.", "listen", "worker")
	descKernel   = desc("kernel_drops_total", "Datagrams that the system dropped because a worker's receive buffer was full, as far as is known when it reads the next one.", "listen", "worker")
	descBursts   = desc("worker_burst_datagrams_total", "Datagrams that came, or went, with others in one buffer of the system's.", "listen", "worker", "direction")
	descAble     = desc("worker_bursts_able", "1 while a worker's socket sends answers in bursts, else 0: the system cannot, has refused, or was not asked.", "listen", "worker")
	descOverload = desc("worker_overloaded", "1 while a worker gets more than it can decide, and its receive buffer is smaller than it was given so that what it decides is in time.", "listen", "worker")
	descBuffer   = desc("receive_buffer_bytes", "Size of a worker's receive buffer, as the system's limit (net.core.rmem_max on Linux) counts it.", "listen", "worker")
)

// Describe implements prometheus.Collector.
func (c *frontCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReceived, descKernel, descBursts, descAble, descOverload, descBuffer} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *frontCollector) Collect(ch chan<- prometheus.Metric) {
	e := emitter{ch}
	for _, l := range c.s.listeners {
		for i, w := range l.workers {
			e.counter(descReceived, w.received.Load(), l.addr.String(), strconv.Itoa(i))
			e.counter(descKernel, w.conn.Dropped(), l.addr.String(), strconv.Itoa(i))
			in, out, able := w.conn.Bursts()
			e.counter(descBursts, in, l.addr.String(), strconv.Itoa(i), "in")
			e.counter(descBursts, out, l.addr.String(), strconv.Itoa(i), "out")
			e.gauge(descAble, number(able), l.addr.String(), strconv.Itoa(i))
			e.gauge(descOverload, number(w.standing.limited.Load()), l.addr.String(), strconv.Itoa(i))
			if size := w.conn.ReadBuffer(); size > 0 { // else it is not told, or closed
				e.gauge(descBuffer, float64(size), l.addr.String(), strconv.Itoa(i))
			}
		}
	}
}
