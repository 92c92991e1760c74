package server

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The bounds of the admin server. A scrape of many tenants takes time to write.
const (
	adminReadTimeout  = 5 * time.Second
	adminWriteTimeout = 30 * time.Second
	adminIdleTimeout  = time.Minute
	adminMaxHeader    = 16 << 10
	adminMaxScrapes   = 4 // at once
)

// newAdmin returns the HTTP server of health, readiness and metrics
// (docs/server.md, "Admin").
func newAdmin(ready func() bool, metrics prometheus.Gatherer, log *slog.Logger) *http.Server {
	errorLog := slog.NewLogLogger(log.With("part", "admin").Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			writeText(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		writeText(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog:            errorLog,
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: adminMaxScrapes,
	}))
	return &http.Server{
		Handler:           onlyLocalHosts(mux),
		ReadHeaderTimeout: adminReadTimeout,
		ReadTimeout:       adminReadTimeout,
		WriteTimeout:      adminWriteTimeout,
		IdleTimeout:       adminIdleTimeout,
		MaxHeaderBytes:    adminMaxHeader,
		ErrorLog:          errorLog,
	}
}

// onlyLocalHosts refuses requests whose Host is not this machine by a name that cannot
// be anybody else's. A browser that was lured to a name which resolves to 127.0.0.1
// (DNS rebinding) sends that name.
func onlyLocalHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			writeText(w, http.StatusMisdirectedRequest, "ask for this server as localhost or by its loopback address")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localHost reports whether a Host header names localhost or a loopback address, with
// or without a port.
func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func writeText(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone; there is nobody else to tell.
	_, _ = io.WriteString(w, text+"\n")
}
