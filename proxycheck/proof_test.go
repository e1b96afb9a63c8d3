package proxycheck

import (
	"strings"
	"testing"
)

func TestCountOf(t *testing.T) {
	t.Parallel()
	// As 2.15.0 and 3.18.0 print them.
	const metrics = `# HELP apisix_http_status HTTP status codes per service in APISIX
# TYPE apisix_http_status counter
apisix_http_status{code="200",route="1",matched_uri="/hello",matched_host="",service="",consumer="",node="127.0.0.1"} 3
apisix_http_status{code="200",route="idle",matched_uri="/hello",matched_host="",service="",consumer="",node="127.0.0.1"} 0
# HELP apisix_http_latency HTTP request latency in milliseconds per service in APISIX
# TYPE apisix_http_latency histogram
apisix_http_latency_bucket{type="apisix",route="1",service="",consumer="",node="127.0.0.1",le="1"} 1
apisix_http_latency_bucket{type="apisix",route="1",service="",consumer="",node="127.0.0.1",le="+Inf"} 1
apisix_http_latency_sum{type="apisix",route="1",service="",consumer="",node="127.0.0.1"} 0.5
apisix_http_latency_count{type="apisix",route="1",service="",consumer="",node="127.0.0.1"} 1
# TYPE apisix_g gauge
apisix_g{route="1"} 2
apisix_u{route="1"} 2
apisix_other{subroute="1",uri="/,route=\"1\""} 2
`
	for _, tt := range []struct {
		text, name, route string
		count             float64
		want              string
	}{
		{metrics, "apisix_http_status", "1", 3, ""},
		{metrics, "apisix_http_latency", "1", 1, ""},
		{metrics, "apisix_g", "1", 2, ""},
		{metrics, "apisix_u", "1", 2, ""},
		{metrics, "apisix_other", "1", 0, ""},
		{metrics, "apisix_http_status", "idle", 0, ""},
		{metrics, "apisix_http_status", "2", 0, ""},
		{metrics, "apisix_bandwidth", "1", 0, "there is no metric apisix_bandwidth"},
		{"", "apisix_http_status", "1", 0, "there is no metric"},
		{"<html>", "apisix_http_status", "1", 0, "there is no metric"},
	} {
		count, err := countOf([]byte(tt.text), tt.name, tt.route)
		if count != tt.count {
			t.Errorf("%s of %s: %g, want %g", tt.name, tt.route, count, tt.count)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s of %s: %v, want %q in it", tt.name, tt.route, err, tt.want)
		}
	}
}

func FuzzCountOf(f *testing.F) {
	f.Add([]byte("# TYPE m counter\nm{route=\"1\"} 1\n"))
	f.Add([]byte("# TYPE m summary\nm_count{route=\"1\"} 1\n"))
	f.Add([]byte("m{route=\"1\"} NaN\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if count, _ := countOf(text, "m", "1"); count > 0 && !strings.Contains(string(text), "m") {
			t.Errorf("found m in %q", text)
		}
	})
}
