package proxycheck

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/embed"
	"armrepro/proxycheck/process"
)

// checksums describes every file under dir: mode, and contents or link target.
func checksums(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch {
		case info.Mode().IsRegular():
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			h := sha256.New()
			if _, err := io.Copy(h, f); err != nil {
				return err
			}
			what = fmt.Sprintf("%x", h.Sum(nil))
		case info.Mode()&fs.ModeSymlink != 0:
			if what, err = os.Readlink(path); err != nil {
				return err
			}
		}
		sums[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), " ", what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sums) < 5 {
		t.Fatalf("%s holds %d files: it is no install", dir, len(sums))
	}
	return sums
}

func sameChecksums(t *testing.T, before, after map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the install was changed (-before +after):\n%s", diff)
	}
}

func etcdAt(endpoint string) Etcd { return Etcd{Endpoints: []string{endpoint}} }

// startEtcd starts the etcd that all tests share, each with a prefix of its own.
func startEtcd(t *testing.T) (endpoint string) {
	t.Helper()
	s, err := sharedEtcd()
	if err != nil {
		t.Fatal(err)
	}
	return s.Endpoint()
}

var sharedEtcd = sync.OnceValues(func() (*embed.Server, error) {
	return embed.Start(context.Background(), embed.Config{Listen: "127.0.0.1:0"})
})

// freePort is a port that nobody listens on. It lies below those that the
// kernel gives to clients, so that no connection takes it before it is used.
func freePort(t *testing.T) int {
	t.Helper()
	const lowest, highest = 15000, 32000
	for range highest - lowest {
		port := lowest + int(nextPort.Add(1)%(highest-lowest))
		l, err := net.Listen("tcp4", hostPort(port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// nextPort begins anywhere, since other tests take ports at the same time.
var nextPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32())
	return n
}()

func freePorts(t *testing.T) Ports {
	t.Helper()
	return Ports{
		Data: freePort(t), Admin: freePort(t), Control: freePort(t),
		Prometheus: freePort(t), TLS: freePort(t),
	}
}

// upstreamBody is what the upstream of the published benchmark answers.
const upstreamBody = "1234567890"

// startUpstream starts an upstream and returns its host and port.
func startUpstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, upstreamBody)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func plainRoute(upstream string) Route {
	return Route{
		Path:           "/hello",
		Body:           fmt.Appendf(nil, `{"uri":"/hello","plugins":{},"upstream":{"type":"roundrobin","nodes":{%q:1}}}`, upstream),
		WantBody:       upstreamBody,
		WithoutHeaders: []string{"X-RateLimit-Limit", "X-RateLimit-Remaining"},
	}
}

// statusMetric counts the requests of pluginRoute.
const statusMetric = "apisix_http_status"

func pluginRoute(upstream string) Route {
	return Route{
		Path:        "/hello",
		Body:        fmt.Appendf(nil, `{"uri":"/hello","plugins":{"limit-count":{"count":2000000000000,"time_window":60,"rejected_code":503,"key":"remote_addr"},"prometheus":{}},"upstream":{"type":"roundrobin","nodes":{%q:1}}}`, upstream),
		WantBody:    upstreamBody,
		WantHeaders: []string{"X-RateLimit-Limit", "X-RateLimit-Remaining"},
	}
}

func running(pid int) bool { return process.Running(os.DirFS("/"), pid) }

// processesIn lists the processes whose working folder is in dir.
func processesIn(dir string) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || (cwd != dir && !strings.HasPrefix(cwd, dir+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// sweepAll is what the next run does first.
func sweepAll(ctx context.Context, runDir string) error {
	return errors.Join(Sweep(ctx, runDir), SweepKeys(runDir))
}
