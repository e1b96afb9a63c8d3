package load

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func hasIPv6() bool {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	ln.Close()
	return true
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Config{
		URL:         "http://127.0.0.1:9080/hello",
		Connections: DefaultConnections,
		Threads:     DefaultThreads,
		Duration:    DefaultDuration,
		Timeout:     DefaultTimeout,
	}
	tests := []struct {
		name   string
		change func(*Config)
		// err is part of the error; empty for none.
		err string
	}{
		{"defaults", func(c *Config) {}, ""},
		{"no threads", func(c *Config) { c.Threads = 0 }, "number of threads must be between 1 and 1024"},
		{"too many threads", func(c *Config) { c.Threads, c.Connections = 1025, 2000 }, "number of threads must be between 1 and 1024"},
		{"fewer connections than threads", func(c *Config) { c.Connections = 1 }, "at least the number of threads"},
		{"too many connections", func(c *Config) { c.Connections = 1 << 40 }, "number of connections must be at most 1048576"},
		{"no duration", func(c *Config) { c.Duration = 0 }, "duration must be longer than 0"},
		{"negative duration", func(c *Config) { c.Duration = -1 }, "duration must be longer than 0"},
		{"no timeout", func(c *Config) { c.Timeout = 0 }, "timeout must be between 1ms and 10m0s"},
		{"long timeout", func(c *Config) { c.Timeout = time.Hour }, "timeout must be between 1ms and 10m0s"},
		{"no URL", func(c *Config) { c.URL = "" }, "want http://host[:port]/path"},
		{"no scheme", func(c *Config) { c.URL = "127.0.0.1/hello" }, "want http://host[:port]/path"},
		{"scheme-like", func(c *Config) { c.URL = "localhost:9080/hello" }, "want http://host[:port]/path"},
		{"other scheme", func(c *Config) { c.URL = "ftp://127.0.0.1/" }, "want http://host[:port]/path"},
		{"no host", func(c *Config) { c.URL = "http:///hello" }, "want http://host[:port]/path"},
		{"port alone", func(c *Config) { c.URL = "http://:80/" }, "want http://host[:port]/path"},
		{"bad port", func(c *Config) { c.URL = "http://127.0.0.1:x/" }, "invalid port"},
		{"control character", func(c *Config) { c.URL = "http://127.0.0.1/\r\nX: y" }, "invalid control character"},
		{"credentials", func(c *Config) { c.URL = "http://user:secret@127.0.0.1/" }, "Authorization"},
		{"space", func(c *Config) { c.URL = "http://127.0.0.1/?a=b c" }, "%20"},
		{"contradictory length", func(c *Config) { c.Body, c.Header = []byte("hello"), http.Header{"content-length": {"3"}} }, "the body has 5 bytes"},
		{"length without a body", func(c *Config) { c.Header = http.Header{"Content-Length": {"3"}} }, "the body has 0 bytes"},
		{"no connections", func(c *Config) { c.Connections, c.Threads = 0, 0 }, "connections must be at least 1"},
		{"bad escape", func(c *Config) { c.URL = "http://127.0.0.1/%zz" }, "invalid URL escape"},
		{"header with line end", func(c *Config) { c.Header = http.Header{"X": {"a\r\nY: b"}} }, "invalid header"},
		{"header name with space", func(c *Config) { c.Header = http.Header{"X Y": {"a"}} }, "invalid header"},
		{"header without name", func(c *Config) { c.Header = http.Header{"": {"a"}} }, "invalid header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := good
			tt.change(&cfg)
			err := cfg.Check()
			switch {
			case tt.err == "" && err != nil:
				t.Errorf("error %v", err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		url, method string
		header      http.Header
		host, port  string
		want        string
	}{
		{
			url: "http://127.0.0.1:9080/hello", host: "127.0.0.1", port: "9080",
			want: "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:9080\r\n\r\n",
		},
		{
			url: "http://example.org", host: "example.org", port: "80",
			want: "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		},
		{
			url: "http://[::1]:81/a%20b?c=d&e#f", host: "::1", port: "81",
			want: "GET /a%20b?c=d&e HTTP/1.1\r\nHost: [::1]:81\r\n\r\n",
		},
		{
			url: "http://127.0.0.1/", method: http.MethodPost, host: "127.0.0.1", port: "80",
			want: "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
		},
		{
			url: "http://127.0.0.1/", method: http.MethodPut, host: "127.0.0.1", port: "80", header: http.Header{"Content-Length": {"0"}},
			want: "PUT / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
		},
		{
			url: "http://127.0.0.1/", method: http.MethodPost, host: "127.0.0.1", port: "80", header: http.Header{"Transfer-Encoding": {"chunked"}},
			want: "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		},
		{
			url: "http://127.0.0.1:9080/", header: http.Header{"host": {"other"}, "B": {"2", ""}, "a": {"1"}},
			host: "127.0.0.1", port: "9080",
			want: "GET / HTTP/1.1\r\nHost: other\r\nB: 2\r\nB: \r\na: 1\r\n\r\n",
		},
	}
	for _, tt := range tests {
		r, err := newTarget(Config{URL: tt.url, Method: tt.method, Header: tt.header})
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if r.host != tt.host || r.port != tt.port || string(r.request) != tt.want {
			t.Errorf("%s: host %q, port %q, request %q; want %q, %q, %q", tt.url, r.host, r.port, r.request, tt.host, tt.port, tt.want)
		}
	}
}
