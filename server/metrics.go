package server

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirhq/weir/limiter"
)

// lockWait has the Go runtime tell for how long its goroutines have waited for locks: workers that decide
// for the same tenant wait for each other. It is go_sync_mutex_wait_total_seconds_total.
var lockWait = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/sync/mutex/wait/total:seconds$")}

// newGatherer returns everything that /metrics shows: the server's own metrics, those
// of the Go runtime and those of the process.
func newGatherer(s *Server) (prometheus.Gatherer, error) {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		&collector{s},
		&frontCollector{s},
		&steeringCollector{s},
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(lockWait)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("server: metrics: %w", err)
		}
	}
	return r, nil
}

// collector shows the server's counters when it is asked. The datagram path only adds
// to atomic counters and knows nothing of Prometheus; metrics are made here, with
// label values that are safe already and by calls that return an error.
type collector struct{ s *Server }

// desc describes one metric.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, labels, nil)
}

var (
	descBuild     = desc("build_info", "1, with what the program was built from.", "version", "revision", "goversion")
	descServer    = desc("server_info", "1, with the server's ID, new at every start.", "server_id")
	descStart     = desc("start_time_seconds", "Unix time at which the server started, which its ID tells too.")
	descReady     = desc("ready", "1 while the server is ready, 0 while it drains.")
	descTenants   = desc("tenants", "How many tenants there are.")
	descReloads   = desc("tenants_reloads_total", "How often the tenants file was put in force (ok), the start included, or refused (failed).", "result")
	descFileGood  = desc("tenants_file_good", "0 when the tenants file was refused at the last attempt, so that older tenants are in force.")
	descErrors    = desc("socket_errors_total", "Errors of UDP sockets, by operation: read or write.", "operation")
	descLatency   = desc("answer_duration_seconds", "Time from a datagram read to its answer handed to the system.")
	descTenant    = desc("tenant_info", "1, with a tenant's key ID, the authentication mode of its newest key, how many keys it has, and its mode: enforce or shadow.", "tenant", "key_id", "auth", "keys", "mode")
	descShadowed  = desc("shadowed_rejections_total", "Requests rejected, and answered so that they pass because the tenant's mode was shadow.", "tenant")
	descDecisions = desc("decisions_total", "Requests answered, by outcome: granted or rejected, and repeats of such.", "tenant", "outcome")
	descLabels    = desc("label_decisions_total", "Requests with a metrics label answered, by label and outcome; labels over the quota count as overflow.", "tenant", "label", "outcome")
	descInUse     = desc("labels", "Metrics labels that are counted apart.", "tenant")
	descReports   = desc("reports_total", "Latency reports taken in.", "tenant")
	descDropped   = desc("dropped_datagrams_total", "Datagrams without an answer or effect, by reason; tenant is empty while nobody's.", "tenant", "reason")
	descBlocks    = desc("dropped_report_blocks_total", "Observations not kept because latency_services_max was reached.", "tenant")
	descRefused   = desc("refused_resource_blocks_total", "Resources rejected because rate_buckets_max was reached.", "tenant")
	descBuckets   = desc("live_buckets", "Buckets with a live consumption.", "tenant")
	descTrackers  = desc("live_trackers", "Latency trackers with a live sample.", "tenant")
	descPacing    = desc("pacing_guards", "Guards (a tracker with a threshold) that have tripped and pace their requests.", "tenant")
	descTrips     = desc("guard_trips_total", "How often a paced guard tripped.", "tenant")
	descIDs       = desc("dedup_identities", "Executed identities remembered against repeats.", "tenant")
	descAnswers   = desc("dedup_answers", "Answers kept for repeats.", "tenant")
	descLost      = desc("dedup_answers_lost_total", "Answers forgotten within their time for want of room; repeats of such are dropped (no_answer).", "tenant")
	descDegraded  = desc("dedup_degraded_total", "Identities forgotten early for want of room, each raising the floor.", "tenant")
	descFloor     = desc("dedup_floor_seconds", "Unix time at or below which unknown identities are dropped.", "tenant")
	descMemory    = desc("tenant_memory_bytes", "Memory of a tenant's state.", "tenant")
	descWorst     = desc("tenant_worst_case_memory_bytes", "What a tenant's state can come to hold with all of its room used up.", "tenant")
	descRoom      = desc("tenant_room", "The bounds of a tenant's state in force, by what they bound.", "tenant", "of")
	descClamped   = desc("tenant_clamped", "1 if the memory limit clamps the tenant's room, else 0.", "tenant")
	descLimit     = desc("memory_limit_bytes", "What the state of all tenants may come to hold, 0 for any amount.")
	descOldKey    = desc("old_key_uses_total", "Datagrams opened by a key that is not the tenant's newest.", "tenant")
	descOldKeyAt  = desc("old_key_last_use_timestamp_seconds", "Unix time of the last such datagram, 0 if there was none.", "tenant")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descBuild, descServer, descStart, descReady, descTenants, descReloads, descFileGood, descErrors, descLatency,
		descTenant, descShadowed, descDecisions, descLabels, descInUse, descReports, descDropped, descBlocks, descRefused, descBuckets, descTrackers,
		descPacing, descTrips, descIDs, descAnswers, descLost, descDegraded, descFloor, descMemory, descWorst, descRoom, descClamped, descLimit, descOldKey, descOldKeyAt,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	e := emitter{ch}
	c.server(e)
	for id, t := range c.s.registry.tenants() {
		collectTenant(e, id, t)
	}
}

func (c *collector) server(e emitter) {
	s := c.s
	version, revision := build()
	e.gauge(descBuild, 1, version, revision, runtime.Version())
	e.gauge(descServer, 1, s.id.String())
	e.gauge(descStart, float64(s.id.Start().Unix()))
	e.gauge(descReady, number(s.ready.Load()))
	e.gauge(descTenants, float64(len(s.registry.tenants())))
	e.gauge(descLimit, float64(s.settings.MemoryLimit))
	e.counter(descReloads, s.counts.reloads.Load(), "ok")
	e.counter(descReloads, s.counts.reloadErrors.Load(), "failed")
	e.gauge(descFileGood, number(!s.counts.reloadBroken.Load()))
	e.counter(descErrors, s.counts.readErrors.Load(), "read")
	e.counter(descErrors, s.counts.writeErrors.Load(), "write")
	count, sum, buckets := s.counts.latency.cumulative()
	e.histogram(descLatency, count, sum, buckets)
	for r := range reasonCount {
		if r.tenantless() {
			e.counter(descDropped, s.counts.dropped[r].Load(), "", r.String())
		}
	}
}

func collectTenant(e emitter, id uint64, t *tenant) {
	s := t.state
	e.gauge(descTenant, 1, t.name, fmt.Sprint(id), t.keys[0].Auth().String(), fmt.Sprint(len(t.keys)), t.mode())
	for r := range reasonCount {
		if !r.tenantless() {
			e.counter(descDropped, s.counts.dropped[r].Load(), t.name, r.String())
		}
	}
	for i := range s.counts.verdicts {
		n := s.counts.verdicts[i].Load()
		switch v := limiter.Verdict(i); {
		case i == 0: // no verdict
		case v == limiter.Observed:
			e.counter(descReports, n, t.name)
		case v.Dropped():
			e.counter(descDropped, n, t.name, v.String())
		default:
			e.counter(descDecisions, n, t.name, v.String())
		}
	}
	labels := s.labels.snapshot()
	e.gauge(descInUse, float64(len(labels)-1), t.name) // the overflow takes no room
	for _, l := range labels {
		for i := range l.counts {
			if n := l.counts[i].Load(); n > 0 {
				e.counter(descLabels, n, t.name, l.label, limiter.Verdict(i).String())
			}
		}
	}
	e.counter(descOldKey, s.counts.oldKeyUses.Load(), t.name)
	e.gauge(descOldKeyAt, seconds(s.counts.oldKeyLastMs.Load()), t.name)
	for _, p := range t.room.parts() {
		e.gauge(descRoom, float64(p.value), t.name, p.name)
	}
	e.gauge(descClamped, number(len(t.room.changes(&t.wanted)) > 0), t.name)
	e.gauge(descWorst, float64(t.room.worst()), t.name)
	collectEngine(e, t.name, s.stats())
}

func collectEngine(e emitter, name string, st limiter.Stats) {
	e.gauge(descBuckets, float64(st.Buckets), name)
	e.gauge(descTrackers, float64(st.Trackers), name)
	e.gauge(descPacing, float64(st.Pacing), name)
	e.counter(descTrips, st.Trips, name)
	e.counter(descShadowed, st.Shadowed, name)
	e.gauge(descIDs, float64(st.Identities), name)
	e.gauge(descAnswers, float64(st.Answers), name)
	e.counter(descLost, st.AnswersLost, name)
	e.counter(descDegraded, st.Degraded, name)
	e.gauge(descFloor, seconds(st.Floor), name)
	e.gauge(descMemory, float64(st.Memory), name)
	e.counter(descBlocks, st.DroppedBlocks, name)
	e.counter(descRefused, st.RefusedBlocks, name)
}

// emitter makes metrics. One that cannot be made is left out: a scrape shows the rest.
type emitter struct{ ch chan<- prometheus.Metric }

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e.emit(prometheus.NewConstMetric(d, prometheus.CounterValue, float64(v), labels...))
}

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e.emit(prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...))
}

func (e emitter) histogram(d *prometheus.Desc, count uint64, sum float64, buckets map[float64]uint64) {
	e.emit(prometheus.NewConstHistogram(d, count, sum, buckets))
}

func (e emitter) emit(m prometheus.Metric, err error) {
	if err == nil {
		e.ch <- m
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(ms uint64) float64 { return time.Duration(ms).Seconds() * 1e6 }

// build returns the module's version and the revision it was built from, or "unknown".
func build() (version, revision string) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}
