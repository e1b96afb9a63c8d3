package apisixtest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// metricsHandler answers with the metrics of all workers, which nginx has in memory
// that they share. Each says in a file where its own are.
func (w *worker) metricsHandler() (http.Handler, error) {
	name := filepath.Join(w.home, fmt.Sprintf("logs/metrics-%d", os.Getpid()))
	if err := os.WriteFile(name+".tmp", []byte(w.server.MetricsURL), 0o644); err != nil {
		return nil, err
	}
	if err := os.Rename(name+".tmp", name+".url"); err != nil {
		return nil, err
	}
	return cached(w.faults.MetricsEvery, http.HandlerFunc(w.metrics)), nil
}

func (w *worker) metrics(rw http.ResponseWriter, _ *http.Request) {
	files, _ := filepath.Glob(filepath.Join(w.home, "logs/metrics-*.url"))
	rw.Header().Set("Server", "openresty")
	seen := map[string]bool{}
	for _, file := range files {
		url, _ := os.ReadFile(file)
		resp, err := http.Get(string(url))
		if err != nil {
			continue // of a worker that has ended
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			// A metric is described once.
			if line := lines.Text(); !strings.HasPrefix(line, "#") || !seen[line] {
				seen[line] = true
				fmt.Fprintln(rw, line)
			}
		}
		resp.Body.Close()
	}
}

// cached answers with what was so at the last multiple of every, as APISIX from
// 3.14 does for its metrics. Zero means always anew.
func cached(every time.Duration, h http.Handler) http.Handler {
	if every == 0 {
		return h
	}
	var mu sync.Mutex
	var last *httptest.ResponseRecorder
	var taken time.Time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(taken) >= every {
			last, taken = httptest.NewRecorder(), time.Now()
			h.ServeHTTP(last, r)
		}
		for name, values := range last.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(last.Code)
		w.Write(last.Body.Bytes())
	})
}
