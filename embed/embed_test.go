package embed

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

// startTest starts etcd on a free port and stops it with the test.
func startTest(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
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

// post sends body to etcd and returns the status and the answer.
func post(t testing.TB, url, body string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func put(t testing.TB, s *Server, key, value string) {
	t.Helper()
	body := fmt.Sprintf(`{"key":%q,"value":%q}`, b64(key), b64(value))
	if status, answer := post(t, s.Endpoint()+"/v3/kv/put", body); status != http.StatusOK {
		t.Fatalf("put: %d %s", status, answer)
	}
}

func get(t testing.TB, s *Server, key string) string {
	t.Helper()
	status, answer := post(t, s.Endpoint()+"/v3/kv/range", fmt.Sprintf(`{"key":%q}`, b64(key)))
	if status != http.StatusOK {
		t.Fatalf("range: %d %s", status, answer)
	}
	return answer
}

func TestServesTheJSONGateway(t *testing.T) {
	t.Parallel()
	s := startTest(t, Config{})
	if !release.MatchString(Version) {
		t.Errorf("version %q, want x.y.z", Version)
	}
	put(t, s, "/apisix/routes/1", "hello")
	if answer := get(t, s, "/apisix/routes/1"); !strings.Contains(answer, b64("hello")) {
		t.Errorf("range answered %s", answer)
	}
	select {
	case err := <-s.Err():
		t.Errorf("Err delivered %v", err)
	default:
	}
}

func TestTwoBesideEachOther(t *testing.T) {
	t.Parallel()
	a, b := startTest(t, Config{}), startTest(t, Config{})
	put(t, a, "k", "of a")
	put(t, b, "k", "of b")
	if answer := get(t, a, "k"); !strings.Contains(answer, b64("of a")) {
		t.Errorf("a answered %s", answer)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if answer := get(t, b, "k"); !strings.Contains(answer, b64("of b")) {
		t.Errorf("b answered %s after a was closed", answer)
	}
}

func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	s := startTest(t, Config{Dir: parent})
	if size := du(t, parent); size > 4<<20 {
		t.Errorf("the data takes %d bytes at start", size)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint(), "http://")); err == nil {
		conn.Close()
		t.Error("the port still answers")
	}
}

// du is the disk space in bytes that the files below dir really take.
func du(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			size += st.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// TestCloseWithOpenWatches holds watches open as a gateway does.
func TestCloseWithOpenWatches(t *testing.T) {
	t.Parallel()
	s := startTest(t, Config{})
	var watches sync.WaitGroup
	for range 5 {
		body := fmt.Sprintf(`{"create_request":{"key":%q,"range_end":%q}}`, b64("/apisix/"), b64("/apisix0"))
		resp, err := http.Post(s.Endpoint()+"/v3/watch", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, first); err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
		})
	}
	if err := s.Close(); err != nil { // it gave up after closeTimeout
		t.Error(err)
	}
	watches.Wait()
}

// TestCloseIsBounded connects and stays silent, which etcd waits for without
// end.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	get(t, s, "k") // the silent connection is accepted once a later one is answered
	// Without a bound it would not return before the test's own deadline.
	t.Logf("Close returned %v", s.Close())
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		cfg  Config
		want string // in the error
		hint string // in the hint
	}{
		{"port taken", Config{Listen: taken.Addr().String()}, "address already in use", "stop what listens there"},
		{"no port", Config{Listen: "127.0.0.1"}, "missing port", "host:port"},
		{"bad port", Config{Listen: "127.0.0.1:http"}, `parsing "http"`, "host:port"},
		{"port too high", Config{Listen: "127.0.0.1:65536"}, `parsing "65536"`, "host:port"},
		{"not loopback", Config{Listen: "0.0.0.0:2379"}, "not a loopback address", "127.0.0.1"},
		{"a name", Config{Listen: "example.org:2379"}, "not a loopback address", "127.0.0.1"},
		{"no such folder", Config{Dir: filepath.Join(t.TempDir(), "gone")}, "no such file", "name a folder"},
		{"a file for a folder", Config{Dir: file}, "not a directory", "name a folder"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.cfg.Listen == "" {
				test.cfg.Listen = "127.0.0.1:0"
			}
			if test.cfg.Dir == "" {
				test.cfg.Dir = t.TempDir()
			}
			s, err := Start(t.Context(), test.cfg)
			if err == nil {
				s.Close()
				t.Fatal("Start succeeded")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q in it", err, test.want)
			}
			if got := process.Hint(err); !strings.Contains(got, test.hint) {
				t.Errorf("hint of %q is %q, want %q in it", err, got, test.hint)
			}
			if left, _ := os.ReadDir(test.cfg.Dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestTooLittleSpace(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	const need = 1 << 60
	if free, err := process.FreeDisk(parent); err != nil || free >= need {
		t.Skipf("the free space is %d bytes, %v", free, err)
	}
	_, err := makeFolder(parent, need)
	if !strings.Contains(process.Hint(err), "free some space") {
		t.Errorf("error %v, want a hint about the space", err)
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			why := errors.New("the user has left")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if after == 0 {
				cancel(why)
			} else {
				time.AfterFunc(after, func() { cancel(why) })
			}
			s, err := Start(ctx, Config{Listen: "127.0.0.1:0", Dir: dir})
			if err == nil { // it was quicker than that
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, why) {
				t.Errorf("error %v, want the cause", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestReportsItsEnd stops etcd behind the server's back.
func TestReportsItsEnd(t *testing.T) {
	t.Parallel()
	s := startTest(t, Config{})
	s.etcd.Server.HardStop()
	select {
	case err := <-s.Err():
		if err == nil {
			t.Error("Err delivered nil")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("Err delivered nothing")
	}
}

// It doesn't run beside other tests, which would disturb what it counts.
func TestLeaksNoGoroutine(t *testing.T) {
	run := func() {
		s, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run() // what is started once for the process
	before := runtime.NumGoroutine()
	for range 3 {
		run()
	}
	deadline := time.Now().Add(2 * time.Minute)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := Start(b.Context(), Config{Listen: "127.0.0.1:0", Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
