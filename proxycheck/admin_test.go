package proxycheck

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"armrepro/proxycheck/process"
)

func TestParseRoutes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string // id and URI
		fails    bool
	}{
		{name: "2.x", in: `{"node":{"key":"\/apisix\/routes","dir":true,"nodes":[{"value":{"status":1,"uri":"\/hello","id":"1"},"modifiedIndex":60,"key":"\/apisix\/routes\/1"}]},"count":1,"action":"get"}`, want: []string{"1 /hello"}},
		{name: "2.x empty", in: `{"node":{"key":"\/apisix\/routes","dir":true,"nodes":{}},"count":0,"action":"get"}`},
		{name: "3.x", in: `{"list":[{"value":{"uri":"/hello","id":1},"key":"/apisix/routes/1"},{"value":{"uris":["/a","/b"]},"key":"/x/routes/two"}],"total":2}`, want: []string{"1 /hello", "two "}},
		{name: "3.x empty", in: `{"list":[],"total":0}`},
		{name: "3.x empty as an object", in: `{"list":{},"total":0}`},
		{name: "neither", in: `{"error_msg":"404 Route Not Found"}`, fails: true},
		{name: "no JSON", in: `<html>`, fails: true},
		{name: "list of a wrong type", in: `{"list":"x"}`, fails: true},
	} {
		routes, err := parseRoutes([]byte(tt.in))
		if (err != nil) != tt.fails {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if len(routes) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, routes, tt.want)
			continue
		}
		for i, r := range routes {
			if got := r.id + " " + r.URI; got != tt.want[i] {
				t.Errorf("%s: route %d is %q, want %q", tt.name, i, got, tt.want[i])
			}
		}
	}
}

func FuzzParseRoutes(f *testing.F) {
	f.Add([]byte(`{"list":[{"value":{"uri":"/hello"},"key":"/apisix/routes/1"}],"total":1}`))
	f.Add([]byte(`{"node":{"nodes":[{"value":{"uri":"\/hello","status":0},"key":"\/apisix\/routes\/1"}]}}`))
	f.Add([]byte(`{"list":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		routes, err := parseRoutes(body)
		if err != nil && routes != nil {
			t.Error("both routes and an error")
		}
		for _, r := range routes {
			r.takes("/hello", "127.0.0.1")
		}
	})
}

func TestRouteTakes(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	for _, tt := range []struct {
		name  string
		route existingRoute
		want  bool
	}{
		{"the same path", existingRoute{URI: "/hello"}, true},
		{"another path", existingRoute{URI: "/other"}, false},
		{"a longer path", existingRoute{URI: "/hello/there"}, false},
		{"one of its paths", existingRoute{URIs: []string{"/a", "/hello"}}, true},
		{"a prefix", existingRoute{URI: "/he*"}, true},
		{"everything", existingRoute{URI: "/*"}, true},
		{"another prefix", existingRoute{URI: "/api/*"}, false},
		{"no path at all", existingRoute{}, false},
		{"switched off", existingRoute{URI: "/hello", Status: &zero}, false},
		{"switched on", existingRoute{URI: "/hello", Status: &one}, true},
		{"GET among others", existingRoute{URI: "/hello", Methods: []string{"POST", "GET"}}, true},
		{"other methods", existingRoute{URI: "/hello", Methods: []string{"POST"}}, false},
		{"this host", existingRoute{URI: "/hello", Host: "127.0.0.1"}, true},
		{"another host", existingRoute{URI: "/hello", Host: "example.com"}, false},
		{"another of hosts", existingRoute{URI: "/hello", Hosts: []string{"a.example", "*.b.example"}}, false},
		{"any host", existingRoute{URI: "/hello", Hosts: []string{"*"}}, true},
	} {
		if got := tt.route.takes("/hello", "127.0.0.1"); got != tt.want {
			t.Errorf("%s: takes = %v", tt.name, got)
		}
	}
	if !(existingRoute{URI: "/", Host: "*.example.com"}).takes("/", "www.example.com") {
		t.Error("a wildcard host doesn't match")
	}
}

// TestAdminErrors goes through what the Admin API was recorded to answer.
func TestAdminErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		status     int
		body       string
		want, hint string
	}{
		{"wrong key, 2.15", 401, `{"error_msg":"failed to check token"}`, "status 401: failed to check token", "pass the right one as --admin-key or $ARMREPRO_ADMIN_KEY; "},
		{"wrong key, 3.18", 401, `{"description":"wrong apikey","error_msg":"failed to check token"}`, "failed to check token, wrong apikey", "--admin-key"},
		{"not allowed", 403, "<html>\r\n<head><title>403 Forbidden</title></head>", "status 403: <html> <head><title>403 Forbidden", "allow_admin"},
		{"no etcd", 503, `{"error_msg":"has no healthy etcd endpoint available"}`, "has no healthy etcd endpoint", "etcd"},
		{"schema", 400, `{"error_msg":"unknown plugin [no-such-plugin]"}`, "unknown plugin [no-such-plugin]", ""},
		{"message", 404, `{"message":"Key not found"}`, "Key not found", ""},
		{"structured message", 400, `{"error_msg":{"a":1}}`, "map[a:1]", ""},
		{"nothing", 500, "", "status 500: Internal Server Error", ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			w.Write([]byte(tt.body))
		}))
		a := &admin{base: s.URL, key: "k"}
		err := a.put(t.Context(), "id", []byte("{}"))
		s.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
		}
		if adminStatus(err) != tt.status {
			t.Errorf("%s: status %d", tt.name, adminStatus(err))
		}
		if got := process.Hint(err); (tt.hint == "") != (got == "") || !strings.Contains(got, tt.hint) {
			t.Errorf("%s: hint %q, want %q in it", tt.name, got, tt.hint)
		}
	}
}

func TestAdminDelete(t *testing.T) {
	t.Parallel()
	for status, fails := range map[int]bool{200: false, 404: false, 401: true, 500: true} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete || r.URL.Path != "/apisix/admin/routes/id" || r.Header.Get("X-API-KEY") != "k" {
				status = http.StatusTeapot
			}
			w.WriteHeader(status)
		}))
		a := &admin{base: s.URL, key: "k"}
		if err := a.delete(t.Context(), "id"); (err != nil) != fails {
			t.Errorf("status %d: %v", status, err)
		}
		s.Close()
	}
}

// An answer without an end must not fill the memory.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	a := &admin{base: s.URL}
	if _, err := a.routes(context.Background()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v", err)
	}
}
