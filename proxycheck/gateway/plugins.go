package gateway

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxClients is how many clients' windows are kept before those that are over
// are dropped.
const maxClients = 4096

// limiter is the plugin limit-count with the policy local: so many requests of
// one client in a window that begins with its first.
type limiter struct {
	*limitSpec
	limit   []string // the header X-RateLimit-Limit
	mu      sync.Mutex
	windows map[string]*limitWindow
}

type limitWindow struct {
	left int64
	end  time.Time
}

func newLimiter(s *limitSpec) *limiter {
	return &limiter{
		limitSpec: s,
		limit:     []string{strconv.FormatInt(s.Count, 10)},
		windows:   map[string]*limitWindow{},
	}
}

// take counts one request of client at now. It returns how many are left in
// the window, when that ends, and whether the request may pass.
func (l *limiter) take(client string, now time.Time) (left int64, end time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[client]
	if w == nil || !now.Before(w.end) {
		if w == nil && len(l.windows) >= maxClients {
			maps.DeleteFunc(l.windows, func(_ string, w *limitWindow) bool { return !now.Before(w.end) })
		}
		w = &limitWindow{left: l.Count, end: now.Add(time.Duration(l.Seconds) * time.Second)}
		l.windows[client] = w
	}
	if w.left == 0 {
		return 0, w.end, false
	}
	w.left--
	return w.left, w.end, true
}

// header adds the quota headers.
func (l *limiter) header(h http.Header, left int64, end, now time.Time) {
	if !l.Headers {
		return
	}
	h["X-RateLimit-Limit"] = l.limit
	h["X-RateLimit-Remaining"] = []string{strconv.FormatInt(left, 10)}
	seconds := (end.Sub(now) + time.Second - 1) / time.Second
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(int64(seconds), 10)}
}

// metricsPath is where APISIX has its metrics.
const metricsPath = "/apisix/prometheus/metrics"

// latencyBuckets are APISIX's, in milliseconds.
var latencyBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000}

// metrics is what the plugin prometheus shows. Names and labels are APISIX's.
type metrics struct {
	registry  *prometheus.Registry
	status    *prometheus.CounterVec
	bandwidth *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	reachable prometheus.Gauge
}

// series are the metrics of one route and node.
type series struct {
	ingress, egress           prometheus.Counter
	request, apisix, upstream prometheus.Observer
	// status makes the counter of a code, and codes keeps them.
	status func(code int) prometheus.Counter
	codes  sync.Map
}

func newMetrics() *metrics {
	route := []string{"route", "service", "consumer", "node"}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		status: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apisix_http_status",
			Help: "HTTP status codes per service",
		}, append([]string{"code", "matched_uri", "matched_host"}, route...)),
		bandwidth: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apisix_bandwidth",
			Help: "Bytes consumed per service",
		}, append([]string{"type"}, route...)),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apisix_http_latency",
			Help:    "Request latency in milliseconds per service",
			Buckets: latencyBuckets,
		}, append([]string{"type"}, route...)),
		reachable: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "apisix_etcd_reachable",
			Help: "Whether etcd answers: 0 is no",
		}),
	}
	m.registry.MustRegister(m.status, m.bandwidth, m.latency, m.reachable)
	return m
}

// series are those of a route and a node, which is empty where none was asked.
// They begin to exist when they first count.
func (m *metrics) series(route, uri, node string) func() *series {
	latency := func(kind string) prometheus.Observer {
		return m.latency.WithLabelValues(kind, route, "", "", node)
	}
	return sync.OnceValue(func() *series {
		return &series{
			ingress:  m.bandwidth.WithLabelValues("ingress", route, "", "", node),
			egress:   m.bandwidth.WithLabelValues("egress", route, "", "", node),
			request:  latency("request"),
			apisix:   latency("apisix"),
			upstream: latency("upstream"),
			status: func(code int) prometheus.Counter {
				return m.status.WithLabelValues(strconv.Itoa(code), uri, "", route, "", "", node)
			},
		}
	})
}

// observe counts one answer. upstream is how long the node took, zero if none
// was asked.
func (s *series) observe(code int, total, upstream time.Duration) {
	counter, ok := s.codes.Load(code)
	if !ok {
		counter, _ = s.codes.LoadOrStore(code, s.status(code))
	}
	counter.(prometheus.Counter).Inc()
	s.request.Observe(milliseconds(total))
	s.apisix.Observe(milliseconds(total - upstream))
	if upstream > 0 {
		s.upstream.Observe(milliseconds(upstream))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// handler serves the metrics, and nothing else.
func (m *metrics) handler(server []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Server"] = server
		mux.ServeHTTP(w, r)
	})
}
