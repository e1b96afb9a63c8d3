package apisixtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"armrepro/embed"
	"armrepro/proxycheck/etcdhttp"
	"armrepro/proxycheck/gateway"
)

const (
	testKey = "test-key"
	// patience is how long a test waits for what takes milliseconds.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) {
	Main()
	code := m.Run()
	if s, err := sharedEtcd(); err == nil {
		s.Close()
	}
	os.Exit(code)
}

var sharedEtcd = sync.OnceValues(func() (*embed.Server, error) {
	return embed.Start(context.Background(), embed.Config{Listen: "127.0.0.1:0"})
})

func startEtcd(t *testing.T) string {
	t.Helper()
	s, err := sharedEtcd()
	if err != nil {
		t.Fatal(err)
	}
	return s.Endpoint()
}

func startUpstream(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Transfer-Encoding", "chunked")
		io.WriteString(w, "1234567890")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// running is a gateway that answers.
type running struct {
	root, home, version, prefix string
	ip                          string
	data, admin                 string // URLs
}

var count atomic.Int32

// newRunning has a loopback address of its own, so that every port is free.
func newRunning(version string) *running {
	n := int(count.Add(1))
	pid := os.Getpid()
	r := &running{version: version, prefix: fmt.Sprintf("/apisix-%d-%d", pid, n)}
	r.ip = fmt.Sprintf("127.%d.%d.%d", 1+pid%250, 1+pid/250%250, n)
	r.data, r.admin = "http://"+r.ip+":9080", "http://"+r.ip+":9180"
	if !isV3(version) {
		r.admin = r.data
	}
	return r
}

func startBuiltin(t *testing.T, version string) *running {
	t.Helper()
	r := newRunning(version)
	s, err := gateway.Start(t.Context(), gateway.Config{
		Listen: r.ip + ":9080", AdminListen: r.ip + ":9180", PrometheusListen: r.ip + ":9091",
		Etcd:   etcdhttp.Config{Endpoints: []string{startEtcd(t)}},
		Prefix: r.prefix, AdminKey: testKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return r
}

func startFake(t *testing.T, version string) *running {
	t.Helper()
	return startWith(t, version, "", "")
}

// startWith starts a fake of two workers with more of deployment, and waits
// until it has a worker that answers.
func startWith(t *testing.T, version, fault, deployment string) *running {
	t.Helper()
	r := newRunning(version)
	r.root = Install(t, version, fault)
	r.home = filepath.Join(r.root, "usr/local/apisix")
	etcd := fmt.Sprintf("etcd:\n  host: [%q]\n  prefix: %s\n", startEtcd(t), r.prefix)
	key := fmt.Sprintf("admin_key: [{name: admin, key: %s, role: admin}]\n", testKey)
	if isV3(version) {
		admin := fmt.Sprintf("deployment:\n  admin:\n    admin_listen: {ip: %s, port: 9180}\n    %s", r.ip, key)
		etcd = admin + indent(deployment+etcd)
		key = ""
	}
	text := fmt.Sprintf("apisix:\n  node_listen: [{ip: %[1]s, port: 9080}]\n  control: {ip: %[1]s, port: 9090}\n"+
		"  ssl: {listen: [{ip: %[1]s, port: 9443}]}\n%[2]splugin_attr: {prometheus: {export_addr: {ip: %[1]s, port: 9091}}}\n"+
		"nginx_config: {worker_processes: \"2\"}\n%[3]s", r.ip, indent(key), etcd)
	write(t, filepath.Join(r.home, "conf/config.yaml"), text)
	r.apisix(t, "start")
	t.Cleanup(func() { r.apisix(t, "stop"); await(t, "the master's end", func() bool { return r.pid() == 0 }) })
	await(t, "an answer", func() bool {
		resp, err := http.Get(r.data + "/")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return true
	})
	return r
}

// indent moves a line's text to the right.
func indent(text string) string {
	return strings.TrimSuffix("  "+strings.ReplaceAll(text, "\n", "\n  "), "  ")
}

func (r *running) apisix(t *testing.T, command string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(r.root, "usr/bin/apisix"), command)
	cmd.Env = append(os.Environ(), "PATH="+Path(r.root))
	cmd.Dir = "/"
	// No pipe: the daemon would hold it open.
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("apisix %s: %v: %s", command, err, said)
	}
}

// pid is the master's, 0 if there is none.
func (r *running) pid() int { return masterPid(r.home) }

// workers are the pids of the master's workers.
func (r *running) workers(t *testing.T) []int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.pid()))
	if err != nil {
		t.Fatal(err)
	}
	var children []byte
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		children = append(children, text...)
	}
	var pids []int
	for _, field := range strings.Fields(string(children)) {
		title, _ := os.ReadFile("/proc/" + field + "/cmdline")
		if pid, err := strconv.Atoi(field); err == nil && strings.Trim(string(title), "\x00") == workerTitle {
			pids = append(pids, pid)
		}
	}
	return pids
}

// answer is a whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes one request on a connection of its own.
func ask(t *testing.T, method, url string, header map[string]string, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Close = header["Connection"] == "close"
	transport := &http.Transport{DisableCompression: true, DialContext: (&net.Dialer{Timeout: patience}).DialContext}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range resp.TransferEncoding {
		resp.Header.Add("Transfer-Encoding", encoding)
	}
	if resp.Close {
		resp.Header.Set("Connection", "close") // which net/http takes out
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// await polls until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestPluginsList(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"2.15.0": "An error occurred.", "3.18.0": `"limit-count","limit-req","prometheus"`} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, version)
			a := ask(t, http.MethodGet, r.admin+"/apisix/admin/plugins/list", map[string]string{"X-API-KEY": testKey}, "")
			status := map[bool]int{true: 200, false: 500}[isV3(version)]
			if a.status != status || !strings.Contains(a.body, want) || a.header.Get("Server") != "APISIX/"+version {
				t.Errorf("answered %+v", a)
			}
			a = ask(t, http.MethodGet, r.admin+"/apisix/admin/configs", map[string]string{"X-API-KEY": testKey}, "")
			message := map[bool]string{true: "Unsupported resource type: configs", false: "not found"}[isV3(version)]
			if a.status != 404 || !strings.Contains(a.body, message) {
				t.Errorf("answered %+v", a)
			}
		})
	}
}

// TestReload has a request on its way while the workers are replaced.
func TestReload(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.15.0", "3.18.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, version)
			await(t, "two workers", func() bool { return len(r.workers(t)) == 2 })
			master, before := r.pid(), r.workers(t)
			r.apisix(t, "reload")
			await(t, "two new workers", func() bool {
				now := r.workers(t)
				return len(now) == 2 && !slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) })
			})
			for _, pid := range before {
				await(t, "an old worker's end", func() bool { return syscall.Kill(pid, 0) != nil })
			}
			if r.pid() != master {
				t.Errorf("the master was %d and is %d", master, r.pid())
			}
			if a := ask(t, http.MethodGet, r.data+"/", nil, ""); a.status != http.StatusNotFound {
				t.Errorf("answered %d", a.status)
			}
		})
	}
}

// TestReusePort counts the sockets that listen on the data port.
func TestReusePort(t *testing.T) {
	t.Parallel()
	r := startFake(t, "3.18.0")
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	ip := net.ParseIP(r.ip).To4()
	for port, want := range map[int]int{9080: 2, 9443: 2, 9180: 1} {
		// In state 0A a socket listens.
		address := fmt.Sprintf("%02X%02X%02X%02X:%04X 00000000:0000 0A", ip[3], ip[2], ip[1], ip[0], port)
		if n := strings.Count(string(text), address); n != want {
			t.Errorf("%d sockets listen on port %d, want %d", n, port, want)
		}
	}
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	key := map[string]string{"X-API-KEY": testKey}
	t.Run("api", func(t *testing.T) {
		t.Parallel()
		r := startWith(t, "3.18.0", "", "role: traditional\nrole_traditional: {config_provider: yaml}\n")
		for _, test := range []struct {
			path   string
			header map[string]string
			status int
			want   string
		}{
			{"routes", key, 404, "404 Not Found"},
			{"routes", nil, 404, "404 Not Found"},
			{"configs", nil, 401, "missing apikey"},
			{"configs", key, 200, "routes_conf_version"},
		} {
			a := ask(t, http.MethodGet, r.admin+adminPath+test.path, test.header, "")
			if a.status != test.status || !strings.Contains(a.body, test.want) || a.header.Get("Server") != "APISIX/3.18.0" {
				t.Errorf("%s: answered %+v", test.path, a)
			}
		}
		if a := ask(t, http.MethodGet, r.data+"/", nil, ""); a.status != 404 || !strings.Contains(a.body, "404 Route Not Found") {
			t.Errorf("the data plane answered %+v", a)
		}
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		r := startWith(t, "3.18.0", "", "role: data_plane\nrole_data_plane: {config_provider: yaml}\n")
		a := ask(t, http.MethodGet, r.data+adminPath+"routes", key, "")
		if a.status != 404 || !strings.Contains(a.body, "404 Route Not Found") || a.header.Get("Server") != "APISIX/3.18.0" {
			t.Errorf("the data plane answered %+v", a)
		}
		if conn, err := net.DialTimeout("tcp", r.ip+":9180", patience); err == nil {
			conn.Close()
			t.Error("there is an Admin API")
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f, err := parseFaults("slow-start=20ms,admin-status=503,not-found=3,workers=2")
	want := Faults{BindWait: 500 * time.Millisecond, SlowStart: 20 * time.Millisecond, AdminStatus: 503, NotFound: 3, Workers: 2}
	if err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
	for _, text := range []string{"explode", "workers=many", "slow-start=2"} {
		if _, err := parseFaults(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
