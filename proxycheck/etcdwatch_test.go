package proxycheck

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"armrepro/embed"
	"armrepro/proxycheck/process"
)

// TestWatchEtcd restarts an etcd, and stops it.
func TestWatchEtcd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, code, want string }{
		{"stays", "", ""},
		{"restarted", "etcd-restarted", "it was restarted with other data"},
		{"stopped", "etcd-lost", "went away during the run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			listen := hostPort(freePort(t))
			start := func() *embed.Server {
				etcd, err := embed.Start(t.Context(), embed.Config{Listen: listen, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { etcd.Close() })
				return etcd
			}
			etcd := start()
			for range 3 {
				putKey(t, etcd.Endpoint())
			}
			w, err := WatchEtcd(t.Context(), etcdAt(etcd.Endpoint()), "")
			if err != nil {
				t.Fatal(err)
			}
			if tt.code != "" {
				etcd.Close()
			}
			if tt.name == "restarted" {
				start()
				_ = process.Poll(t.Context(), pollEvery, func() error {
					if len(w.losses) == 0 {
						return fmt.Errorf("nothing noticed")
					}
					return nil
				})
			}
			got := w.Close()
			if tt.code == "" {
				if len(got) > 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != tt.code || !strings.Contains(got[0].Text, tt.want) || got[0].Hint == "" {
				t.Errorf("%+v, want %s with %q", got, tt.code, tt.want)
			}
		})
	}
}

func putKey(t *testing.T, endpoint string) {
	t.Helper()
	if _, err := process.Fetch(t.Context(), http.MethodPost, endpoint+"/v3/kv/put", `{"key":"YQ==","value":"YQ=="}`); err != nil {
		t.Fatal(err)
	}
}

// TestWatchEtcdBehindProxy has a proxy end the requests that stay open: etcd is well.
func TestWatchEtcdBehindProxy(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(startEtcd(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	watches := make(chan bool, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/watch") {
			io.Copy(io.Discard, r.Body)
			watches <- true
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer s.Close()
	w, err := WatchEtcd(t.Context(), etcdAt(s.URL), "/some")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-watches
	}
	if got := w.Close(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
