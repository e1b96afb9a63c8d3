package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

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
	// series caches the label lookups by route label, uri and node.
	series sync.Map // seriesKey → *series
}

type seriesKey struct{ label, uri, node string }

// series are the metrics of one route and node.
type series struct {
	bandwidth                 bandwidth
	request, apisix, upstream prometheus.Observer
	// status is by code.
	status sync.Map // int → prometheus.Counter
}

func newMetrics(conns *connCounts, reachable func() bool) *metrics {
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
	}
	m.registry.MustRegister(m.status, m.bandwidth, m.latency)
	m.gauge("apisix_etcd_reachable", "Whether etcd answers: 0 is no", nil, func() float64 {
		if reachable() {
			return 1
		}
		return 0
	})
	m.gauge("apisix_http_requests_total", "Client requests since the start", nil,
		func() float64 { return float64(conns.requests.Load()) })
	for state, value := range map[string]func() float64{
		"accepted": func() float64 { return float64(conns.accepted.Load()) },
		"handled":  func() float64 { return float64(conns.accepted.Load()) },
		"active": func() float64 {
			return float64(conns.reading.Load() + conns.writing.Load() + conns.waiting.Load())
		},
		"reading": func() float64 { return float64(conns.reading.Load()) },
		"writing": func() float64 { return float64(conns.writing.Load()) },
		"waiting": func() float64 { return float64(conns.waiting.Load()) },
	} {
		m.gauge("apisix_nginx_http_current_connections", "Client connections by state",
			prometheus.Labels{"state": state}, value)
	}
	return m
}

func (m *metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// of returns the series of a route and a node, which is empty where no node
// was asked.
func (m *metrics) of(r *route, n *balanced) *series {
	key := seriesKey{label: r.label, uri: r.uri}
	if n != nil {
		key.node = n.host
	}
	if s, ok := m.series.Load(key); ok {
		return s.(*series)
	}
	latency := func(kind string) prometheus.Observer {
		return m.latency.WithLabelValues(kind, key.label, "", "", key.node)
	}
	s, _ := m.series.LoadOrStore(key, &series{
		bandwidth: bandwidth{
			ingress: m.bandwidth.WithLabelValues("ingress", key.label, "", "", key.node),
			egress:  m.bandwidth.WithLabelValues("egress", key.label, "", "", key.node),
		},
		request:  latency("request"),
		apisix:   latency("apisix"),
		upstream: latency("upstream"),
	})
	return s.(*series)
}

// observe counts one answer. upstream is how long the node took, zero if none
// was asked.
func (m *metrics) observe(r *route, n *balanced, conn *clientConn, code int, total, upstream time.Duration) {
	s := m.of(r, n)
	counter, ok := s.status.Load(code)
	if !ok {
		node := ""
		if n != nil {
			node = n.host
		}
		counter = m.status.WithLabelValues(strconv.Itoa(code), r.uri, "", r.label, "", "", node)
		s.status.Store(code, counter)
	}
	counter.(prometheus.Counter).Inc()
	s.request.Observe(milliseconds(total))
	s.apisix.Observe(milliseconds(total - upstream))
	if n != nil {
		s.upstream.Observe(milliseconds(upstream))
	}
	conn.bill = &s.bandwidth
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
