package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirhq/weir/apikey"
)

// get asks a server's admin address and returns the status and the body.
func get(t *testing.T, s *running, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.AdminAddr().String()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestHealth(t *testing.T) {
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Admin: "localhost:0", Drain: time.Hour})
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if status, body := get(t, s, path); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if status, _ := get(t, s, "/"); status != http.StatusNotFound {
		t.Errorf("/: %d", status)
	}
	s.cancel()
	s.log.await(t, "msg=draining", 1)
	if status, body := get(t, s, "/healthz"); status != http.StatusOK {
		t.Errorf("draining: /healthz: %d %q", status, body)
	}
	if status, body := get(t, s, "/readyz"); status != http.StatusServiceUnavailable || body != "not ready\n" {
		t.Errorf("draining: /readyz: %d %q", status, body)
	}
}

func testAdmin() *http.Server {
	return newAdmin(func() bool { return true }, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// A page that was loaded from elsewhere reaches the loopback address by a name of its
// own, and gets nothing.
func TestHostHeader(t *testing.T) {
	for host, want := range map[string]int{
		"localhost": http.StatusOK, "localhost:9292": http.StatusOK, "LOCALHOST:9292": http.StatusOK,
		"127.0.0.1": http.StatusOK, "127.0.0.1:9292": http.StatusOK, "127.1.2.3:1": http.StatusOK,
		"[::1]": http.StatusOK, "[::1]:9292": http.StatusOK, "[::ffff:127.0.0.1]:9292": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example:9292": http.StatusMisdirectedRequest,
		"localhost.evil.example": http.StatusMisdirectedRequest, "127.0.0.1.evil.example": http.StatusMisdirectedRequest,
		"192.0.2.1:9292": http.StatusMisdirectedRequest, "[2001:db8::1]:9292": http.StatusMisdirectedRequest,
		"": http.StatusMisdirectedRequest, ":9292": http.StatusMisdirectedRequest, "2130706433": http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			req.Host = host
			w := httptest.NewRecorder()
			testAdmin().Handler.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("Host %q, %s: %d, want %d", host, path, w.Code, want)
			}
		}
	}
}

func TestAdminOnlyReads(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		req := httptest.NewRequestWithContext(t.Context(), method, "/healthz", http.NoBody)
		req.Host = "localhost"
		w := httptest.NewRecorder()
		testAdmin().Handler.ServeHTTP(w, req)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// So many scrapes are made at once, and no more: each costs memory.
func TestScrapesAtOnce(t *testing.T) {
	begun, let := make(chan struct{}), make(chan struct{})
	r := prometheus.NewRegistry()
	r.MustRegister(collectorFunc(func(emitter) {
		begun <- struct{}{}
		<-let
	}))
	handler := newAdmin(func() bool { return true }, r, slog.New(slog.DiscardHandler)).Handler
	scrape := func() int {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		req.Host = "localhost"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w.Code
	}
	var scrapes sync.WaitGroup
	for range adminMaxScrapes {
		scrapes.Go(func() {
			if code := scrape(); code != http.StatusOK {
				t.Errorf("a scrape: %d", code)
			}
		})
	}
	for range adminMaxScrapes {
		<-begun
	}
	more := make(chan int, 1)
	go func() { more <- scrape() }()
	select {
	case code := <-more:
		if code != http.StatusServiceUnavailable {
			t.Errorf("one scrape too many: %d", code)
		}
	case <-begun:
		t.Error("one scrape too many is made")
	}
	close(let)
	scrapes.Wait()
}

func TestAdminHasTimeouts(t *testing.T) {
	a := testAdmin()
	if a.ReadHeaderTimeout <= 0 || a.ReadTimeout <= 0 || a.WriteTimeout <= 0 || a.IdleTimeout <= 0 || a.MaxHeaderBytes <= 0 {
		t.Errorf("the HTTP server waits without end: %+v", a)
	}
}

// A scrape after traffic parses, follows the naming rules, and has what happened:
// decisions, reports, drops, a hostile label, state, old keys.
func TestMetrics(t *testing.T) {
	newer, older := newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.RateBuckets = 1 }), newKey(t, apikey.AuthCookie, 7)
	s := start(t, Config{
		Tenants: []Tenant{{Keys: []apikey.Key{newer, older}, Name: `the "shop"`}},
		Admin:   "127.0.0.1:0",
		Clock:   newFakeClock(), // stands still: nothing expires before it is counted
	})
	client := dial(t, newer, s.Addrs()[0])
	client.at = testTime
	hostile := checkout(6)
	hostile.Label = "a\n\xff\"} 1"
	client.acquire(hostile)
	client.acquire(hostile) // 12 of 10
	client.fresh()
	if _, err := client.conn.WriteToUDPAddrPort(client.report(observation(3)), client.to); err != nil {
		t.Fatal(err)
	}
	stranger := dial(t, newKey(t, apikey.AuthAES, 9), s.Addrs()[0])
	stranger.at = testTime
	stranger.fresh()
	if _, err := client.conn.WriteToUDPAddrPort(stranger.request(hostile), client.to); err != nil {
		t.Fatal(err)
	}
	client.header.Timestamp = 1
	client.next()
	if _, err := client.conn.WriteToUDPAddrPort(client.request(hostile), client.to); err != nil {
		t.Fatal(err)
	}
	client.fresh()
	again := client.request(checkout(1))
	for range 2 { // the second is a repeat
		if _, _, err := client.exchange(again); err != nil {
			t.Fatal(err)
		}
	}
	old := dial(t, older, s.Addrs()[0])
	old.at = testTime
	old.header.UniqueID[15] = 1
	other := checkout(1)
	other.Resources[0].Bucket[0]++ // there is room for one bucket
	old.acquire(other)

	// An answer is timed when it is on its way already.
	eventually(t, "five answers are timed", func() bool { n, _, _ := s.counts.latency.cumulative(); return n == 5 })
	status, text := get(t, s, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		t.Fatalf("the scrape does not parse: %v", err)
	}
	const shop = `tenant="the \"shop\""`
	for _, line := range []string{
		`weir_decisions_total{outcome="granted",` + shop + `} 2`,
		`weir_decisions_total{outcome="rejected",` + shop + `} 2`,
		`weir_decisions_total{outcome="repeat_granted",` + shop + `} 1`,
		`weir_decisions_total{outcome="repeat_rejected",` + shop + `} 0`,
		`weir_label_decisions_total{label="a\\x0a\\xff\"} 1",outcome="granted",` + shop + `} 1`,
		`weir_label_decisions_total{label="a\\x0a\\xff\"} 1",outcome="rejected",` + shop + `} 1`,
		`weir_reports_total{` + shop + `} 1`,
		`weir_dropped_datagrams_total{reason="unknown_key",tenant=""} 1`,
		`weir_dropped_datagrams_total{reason="stale",` + shop + `} 1`,
		`weir_dropped_datagrams_total{reason="auth",` + shop + `} 0`,
		`weir_live_buckets{` + shop + `} 1`,
		`weir_live_trackers{` + shop + `} 1`,
		`weir_dedup_identities{` + shop + `} 5`,
		`weir_dedup_degraded_total{` + shop + `} 0`,
		`weir_dedup_answers_lost_total{` + shop + `} 0`,
		`weir_dedup_floor_seconds{` + shop + `} 1.8e+09`,
		`weir_labels{` + shop + `} 1`,
		`weir_dropped_report_blocks_total{` + shop + `} 0`,
		`weir_refused_resource_blocks_total{` + shop + `} 1`,
		`weir_old_key_uses_total{` + shop + `} 1`,
		`weir_old_key_last_use_timestamp_seconds{` + shop + `} 1.8e+09`,
		`weir_tenant_info{auth="aes",key_id="7",keys="2",mode="enforce",` + shop + `} 1`,
		`weir_server_info{server_id="` + s.ID().String() + `"} 1`,
		`weir_answer_duration_seconds_count 5`,
		`weir_tenants 1`, `weir_ready 1`, `weir_tenants_file_good 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the scrape has no line %s", line)
		}
	}
	if strings.Contains(text, `weir_dropped_datagrams_total{reason="auth",tenant=""}`) {
		t.Error("a datagram can be nobody's and not authentic")
	}
	for _, reason := range allReasons() {
		if !strings.Contains(text, `weir_dropped_datagrams_total{reason="`+reason+`"`) {
			t.Errorf("the reason %s is not shown", reason)
		}
	}
	for _, part := range []string{"weir_build_info{", "go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(text, part) {
			t.Errorf("the scrape has no %s", part)
		}
	}
	if strings.Contains(text, newer.Encode()) || strings.Contains(text, older.Encode()) {
		t.Error("the scrape shows a key")
	}
	if problems, err := testutil.GatherAndLint(prometheusOf(t, s.Server)); err != nil || len(problems) != 0 {
		t.Errorf("naming: %v, %v", problems, err)
	}
}

// prometheusOf gathers a server's own metrics only, and strictly.
func prometheusOf(t *testing.T, s *Server) prometheus.Gatherer {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(&collector{s}); err != nil {
		t.Fatal(err)
	}
	return r
}

// A metric that cannot be made is left out, and nothing panics.
func TestMetricThatCannotBeMade(t *testing.T) {
	ch := make(chan prometheus.Metric, 2)
	e := emitter{ch}
	e.counter(descReports, 1, "not UTF-8 \xff")
	e.counter(descReports, 1) // a label value too few
	e.counter(descReports, 1, "good")
	if len(ch) != 1 {
		t.Errorf("%d metrics were made, want 1", len(ch))
	}
}

func TestLatencyHistogram(t *testing.T) {
	var h latencyHistogram
	for _, d := range []time.Duration{0, time.Microsecond, time.Microsecond + 1, 3 * time.Millisecond, time.Minute} {
		h.observe(d, 1)
	}
	count, sum, buckets := h.cumulative()
	if count != 5 || sum != 60.003002001 {
		t.Errorf("count %d, sum %v", count, sum)
	}
	for bound, want := range map[float64]uint64{1e-6: 2, 2e-6: 3, 2e-3: 3, 5e-3: 4, 1e-2: 4} {
		if buckets[bound] != want {
			t.Errorf("up to %v s: %d, want %d", bound, buckets[bound], want)
		}
	}
}

// The admin server's failure ends the server with an error.
func TestAdminFailure(t *testing.T) {
	s, err := New(Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Listen: []string{"127.0.0.1:0"}, Admin: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.adminLn.Close()
	if err := s.Run(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "server: admin: ") {
		t.Errorf("Run returns %v", err)
	}
}
