package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// startRoute starts a gateway whose only route leads everything to nodes.
func startRoute(t *testing.T, nodes ...string) *Server {
	t.Helper()
	s := startTest(t, testConfig(t))
	mustPut(t, s, "1", plainBody("/*", nodes...))
	await(t, "the route", func() bool { return s.routes.table.Load().find("/") != nil })
	return s
}

func TestForwardsTheRequest(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	upstream := startHandler(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text))
		got <- r
	})
	s := startRoute(t, upstream)
	do(t, http.MethodPost, s.URL+"/a%2Fb/c?d=e%20f", map[string]string{
		"Host": "example.org", "Connection": "X-Hop", "X-Hop": "1", "Te": "trailers", "Upgrade": "websocket",
		"X-Forwarded-For": "192.0.2.1", "User-Agent": "", "X-Own": "kept",
	}, "the body")
	r := <-got
	text, _ := io.ReadAll(r.Body)
	if string(text) != "the body" || r.Method != http.MethodPost || r.RequestURI != "/a%2Fb/c?d=e%20f" {
		t.Errorf("forwarded %s %s %q", r.Method, r.RequestURI, text)
	}
	host := strings.TrimPrefix(s.URL, "http://")
	if r.Host != host {
		t.Errorf("host %q, want %q", r.Host, host)
	}
	_, port, _ := net.SplitHostPort(host)
	for name, want := range map[string]string{
		"X-Own": "kept", "X-Hop": "", "Te": "", "Upgrade": "", "Connection": "", "User-Agent": "",
		"X-Real-Ip": "127.0.0.1", "X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Proto": "http",
		"X-Forwarded-Host": "127.0.0.1", "X-Forwarded-Port": port, "Accept-Encoding": "",
	} {
		if got := strings.Join(r.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestForwardsTheAnswer(t *testing.T) {
	t.Parallel()
	upstream := startHandler(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Server", "upstream/1")
		h.Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		h.Set("X-Own", "kept")
		h.Set("Content-Type", "text/plain")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		switch r.URL.Path {
		case "/length":
			h.Set("Content-Length", "10")
			io.WriteString(w, helloTen)
		case "/chunked":
			h.Set("Transfer-Encoding", "chunked")
			io.WriteString(w, helloTen)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/not-modified":
			w.WriteHeader(http.StatusNotModified)
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
		}
	})
	s := startRoute(t, upstream)
	for _, test := range []struct {
		method, path     string
		status           int
		length, encoding string
		body             string
	}{
		{http.MethodGet, "/length", 200, "10", "", helloTen},
		{http.MethodHead, "/length", 200, "10", "", ""},
		{http.MethodGet, "/chunked", 200, "", "chunked", helloTen},
		{http.MethodHead, "/chunked", 200, "", "", ""},
		{http.MethodGet, "/none", 204, "", "", ""},
		{http.MethodGet, "/not-modified", 304, "", "", ""},
		{http.MethodGet, "/teapot", 418, "0", "", ""},
	} {
		a := do(t, test.method, s.URL+test.path, nil, "")
		if a.status != test.status || a.body != test.body {
			t.Errorf("%s %s: %d %q", test.method, test.path, a.status, a.body)
		}
		for name, want := range map[string]string{
			"Content-Length": test.length, "Transfer-Encoding": test.encoding, "X-Own": "kept", "X-Hop": "",
			"Server": "armrepro-builtin/1.2.3", "Connection": "keep-alive",
		} {
			if got := strings.Join(a.header.Values(name), "|"); got != want {
				t.Errorf("%s %s: %s %q, want %q", test.method, test.path, name, got, want)
			}
		}
		if date := a.header.Get("Date"); date == "" || strings.Contains(date, "1970") {
			t.Errorf("%s %s: Date %q", test.method, test.path, date)
		}
	}
}

// TestHTTP10 has an answer that ends with its connection.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	s := startRoute(t, startUpstream(t))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /hello HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasSuffix(text, []byte("\r\n\r\n"+helloTen)) || bytes.Contains(text, []byte("chunked")) {
		t.Errorf("%v %q", err, text)
	}
}

// TestStreams: what the upstream has sent arrives before it sends the rest.
func TestStreams(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	upstream := startHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first ")
		http.NewResponseController(w).Flush()
		<-goOn
		io.WriteString(w, strings.Repeat("x", 100<<10))
	})
	s := startRoute(t, upstream)
	resp, err := http.Get(s.URL + "/")
	if err != nil {
		close(goOn)
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("first "))
	_, err = io.ReadFull(resp.Body, first)
	close(goOn)
	if err != nil || string(first) != "first " {
		t.Fatalf("%q %v", first, err)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 100<<10 {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}

// TestCutAnswer: half an answer must not look like a whole one.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	upstream := startHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half of ")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	s := startRoute(t, upstream)
	resp, err := http.Get(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v", text, err)
	}
}

// TestAsksAnotherNode has one node of two down.
func TestAsksAnotherNode(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(down.URL, "http://")
	down.Close()
	s := startRoute(t, address, startUpstream(t))
	for range 10 {
		if a := do(t, http.MethodGet, s.URL+"/", nil, ""); a.status != 200 {
			t.Errorf("answered %d", a.status)
		}
	}
	statuses := map[int]int{}
	for range 10 {
		statuses[do(t, http.MethodPost, s.URL+"/", nil, "body").status]++
	}
	if statuses[200] != 5 || statuses[502] != 5 {
		t.Errorf("with a body, which is sent once only: %v", statuses)
	}
}

func TestNoNode(t *testing.T) {
	t.Parallel()
	s := startRoute(t)
	if a := do(t, http.MethodGet, s.URL+"/", nil, ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("answered %d %s", a.status, a.body)
	}
}

func TestSpreadsByWeight(t *testing.T) {
	t.Parallel()
	var counts [2]atomic.Int64
	var nodes [2]string
	for i := range nodes {
		nodes[i] = startHandler(t, func(http.ResponseWriter, *http.Request) { counts[i].Add(1) })
	}
	s := startTest(t, testConfig(t))
	mustPut(t, s, "1", strings.Replace(plainBody("/*", nodes[0], nodes[1]), nodes[0]+`":1`, nodes[0]+`":3`, 1))
	await(t, "the route", func() bool { return s.routes.table.Load().find("/") != nil })
	for range 40 {
		do(t, http.MethodGet, s.URL+"/", nil, "")
	}
	if a, b := counts[0].Load(), counts[1].Load(); a != 30 || b != 10 {
		t.Errorf("%d and %d requests, want 30 and 10", a, b)
	}
}

// TestClientGone: a client that hangs up takes its request to the upstream
// with it.
func TestClientGone(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	upstream := startHandler(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	})
	s := startTest(t, testConfig(t))
	mustPut(t, s, "1", pluginBody("/hello", 100, upstream))
	await(t, "the route", func() bool { return s.routes.table.Load().find("/hello") != nil })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(conn)
	io.WriteString(w, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	conn.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the upstream still works on it")
	}
	await(t, "the status 499", func() bool { return metric(t, s, "apisix_http_status", `code="499"`) == 1 })
}
