package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"armrepro/embed"
	"armrepro/proxycheck/etcdhttp"
)

const (
	testKey  = "test-key"
	helloTen = "1234567890"
	// patience is how long a test waits for what takes milliseconds.
	patience = 2 * time.Minute
)

// sharedEtcd is one etcd for every test that does not stop it; each has a
// prefix of its own.
var sharedEtcd = sync.OnceValues(func() (*embed.Server, error) {
	dir, err := os.MkdirTemp("", "gateway-test-")
	if err != nil {
		return nil, err
	}
	sharedDir = dir
	return embed.Start(context.Background(), embed.Config{Listen: "127.0.0.1:0", Dir: dir})
})

var (
	sharedDir   string
	prefixCount atomic.Int64
)

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedDir != "" {
		if s, err := sharedEtcd(); err == nil {
			s.Close()
		}
		os.RemoveAll(sharedDir)
	}
	os.Exit(code)
}

// testConfig is a configuration on free ports and the shared etcd.
func testConfig(t testing.TB) Config {
	t.Helper()
	s, err := sharedEtcd()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Listen:           "127.0.0.1:0",
		AdminListen:      "127.0.0.1:0",
		PrometheusListen: "127.0.0.1:0",
		Etcd:             etcdhttp.Config{Endpoints: []string{s.Endpoint()}},
		Prefix:           fmt.Sprintf("/test-%d", prefixCount.Add(1)),
		AdminKey:         testKey,
		Version:          "1.2.3",
	}
}

func startTest(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// startUpstream answers as the upstream of the benchmark does.
func startUpstream(t testing.TB) (address string) {
	t.Helper()
	return startHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Transfer-Encoding", "chunked")
		io.WriteString(w, helloTen)
	})
}

func startHandler(t testing.TB, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// plainBody and pluginBody are the routes of the two scenarios.
func plainBody(uri string, nodes ...string) string { return routeBody(uri, `{}`, nodes...) }

func pluginBody(uri string, count int64, nodes ...string) string {
	return routeBody(uri, fmt.Sprintf(`{"limit-count":{"count":%d,"time_window":60,"rejected_code":503,"key":"remote_addr"},"prometheus":{}}`, count), nodes...)
}

func routeBody(uri, plugins string, nodes ...string) string {
	weights := map[string]int{}
	for _, n := range nodes {
		weights[n] = 1
	}
	text, _ := json.Marshal(weights)
	return fmt.Sprintf(`{"uri":%q,"plugins":%s,"upstream":{"type":"roundrobin","nodes":%s}}`, uri, plugins, text)
}

// answer is an HTTP answer with all of its headers.
type answer struct {
	status int
	header http.Header
	body   string
}

// do makes one request on a connection of its own.
func do(t testing.TB, method, url string, header map[string]string, body string) answer {
	t.Helper()
	a, err := try(method, url, header, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(method, url string, header map[string]string, body string) (answer, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Close = header["Connection"] == "close"
	conn, err := net.DialTimeout("tcp", req.URL.Host, patience)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return answer{}, err
	}
	return exchange(conn, bufio.NewReader(conn), req)
}

// exchange makes one request on a connection that is open.
func exchange(conn net.Conn, r *bufio.Reader, req *http.Request) (answer, error) {
	var out bytes.Buffer
	if err := req.Write(&out); err != nil {
		return answer{}, err
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		return answer{}, err
	}
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, encoding := range resp.TransferEncoding {
		resp.Header.Add("Transfer-Encoding", encoding)
	}
	if resp.Close {
		resp.Header.Set("Connection", "close") // which net/http takes out
	}
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// put puts a route by the Admin API.
func put(t testing.TB, s *Server, id, body string) answer {
	t.Helper()
	return do(t, http.MethodPut, s.AdminURL+"/apisix/admin/routes/"+id, map[string]string{"X-API-KEY": testKey}, body)
}

func mustPut(t testing.TB, s *Server, id, body string) {
	t.Helper()
	if a := put(t, s, id, body); a.status != http.StatusCreated && a.status != http.StatusOK {
		t.Fatalf("PUT answered %d %s", a.status, a.body)
	}
}

// await polls until the condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitStatus polls the data plane until it answers with status.
func awaitStatus(t testing.TB, s *Server, path string, status int) {
	t.Helper()
	await(t, fmt.Sprintf("%s to answer %d", path, status), func() bool {
		return do(t, http.MethodGet, s.URL+path, nil, "").status == status
	})
}

// metric is the value of a line of the metrics that begins with name and holds
// all of labels, -1 if there is none.
func metric(t testing.TB, s *Server, name string, labels ...string) float64 {
	t.Helper()
	for line := range strings.Lines(do(t, http.MethodGet, s.MetricsURL, nil, "").body) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		all := true
		for _, l := range labels {
			all = all && strings.Contains(line, l)
		}
		if all {
			fields := strings.Fields(line)
			var v float64
			if _, err := fmt.Sscan(fields[len(fields)-1], &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return -1
}
