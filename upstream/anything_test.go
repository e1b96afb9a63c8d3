package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// anythingOf sends one request to /anything and returns what it answers.
func anythingOf(t *testing.T, s *Server, request string) anythingAnswer {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(
		strings.TrimPrefix(exchange(t, s, request), "HTTP/1.1 100 Continue\r\n\r\n"))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("status %s, content type %q", response.Status, response.Header.Get("Content-Type"))
	}
	var a anythingAnswer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

type object = map[string]any

func TestAnything(t *testing.T) {
	t.Parallel()
	const multipart = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n" +
		"--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\nfile one\r\n" +
		"--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"y.bin\"\r\n\r\n\xff\x00\r\n" +
		"--XX--\r\n"
	tests := []struct {
		name, method, target, contentType, body string
		// want holds what isn't empty.
		want anythingAnswer
	}{
		{name: "GET", method: "GET", target: "/anything"},
		{name: "path", method: "GET", target: "/anything/a/b%20c"},
		{name: "args", method: "DELETE", target: "/anything?a=1&b=2&b=3&c=&d&e=%41+%c3%a4", want: anythingAnswer{
			Args: object{"a": "1", "b": []any{"2", "3"}, "c": "", "d": "", "e": "A ä"},
		}},
		{name: "bad escapes", method: "GET", target: "/anything?a=%zz&b=1", want: anythingAnswer{Args: object{"b": "1"}}},
		{name: "form", method: "POST", target: "/anything", contentType: "application/x-www-form-urlencoded; charset=utf-8", body: "a=1&b=2&b=3", want: anythingAnswer{
			Form: object{"a": "1", "b": []any{"2", "3"}},
		}},
		{name: "no form", method: "POST", target: "/anything", contentType: "application/x-www-form-urlencoded", body: "a=%zz", want: anythingAnswer{Data: "a=%zz"}},
		{name: "JSON", method: "PUT", target: "/anything", contentType: "application/json", body: `{"b":[1,true,null],"a":"<é>"}`, want: anythingAnswer{
			Data: `{"b":[1,true,null],"a":"<é>"}`, JSON: object{"a": "<é>", "b": []any{1.0, true, nil}},
		}},
		{name: "JSON of any type", method: "PATCH", target: "/anything", contentType: "text/plain", body: `"x"`, want: anythingAnswer{Data: `"x"`, JSON: "x"}},
		{name: "broken JSON", method: "POST", target: "/anything", contentType: "application/json", body: `{"a":1`, want: anythingAnswer{Data: `{"a":1`}},
		{name: "two JSONs", method: "POST", target: "/anything", contentType: "application/json", body: `{} {}`, want: anythingAnswer{Data: `{} {}`}},
		{name: "deep JSON", method: "POST", target: "/anything", body: strings.Repeat("[", 20000), want: anythingAnswer{Data: strings.Repeat("[", 20000)}},
		{name: "binary", method: "POST", target: "/anything", contentType: "application/octet-stream", body: "\xff\x00\x01", want: anythingAnswer{
			Data: "data:application/octet-stream;base64,/wAB",
		}},
		{name: "files", method: "POST", target: "/anything", contentType: `multipart/form-data; boundary="XX"`, body: multipart, want: anythingAnswer{
			Form: object{"a": "1"}, Files: object{"f": []any{"file one", "data:application/octet-stream;base64,/wA="}},
		}},
		{name: "cut multipart", method: "POST", target: "/anything", contentType: "multipart/form-data; boundary=XX", body: "--XX\r\nContent", want: anythingAnswer{Data: "--XX\r\nContent"}},
		{name: "multipart without boundary", method: "POST", target: "/anything", contentType: "multipart/form-data", body: "x", want: anythingAnswer{Data: "x"}},
	}
	s := startTest(t, nginxTimeouts)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := map[string]string{"Host": "example.org:1", "X-Twice": "a,b"}
			lines := "Host: example.org:1\r\nx-twice:a\r\nX-TWICE:\t b \r\n"
			if tt.contentType != "" {
				headers["Content-Type"] = tt.contentType
				lines += "content-type: " + tt.contentType + "\r\n"
			}
			want := tt.want
			want.Method, want.URL, want.Origin = tt.method, "http://example.org:1"+tt.target, "127.0.0.1"
			for _, m := range []*object{&want.Args, &want.Files, &want.Form} {
				if *m == nil {
					*m = object{}
				}
			}
			for framing, text := range map[string]string{
				"Content-Length":    fmt.Sprintf("%d\r\n\r\n%s", len(tt.body), tt.body),
				"Transfer-Encoding": fmt.Sprintf("chunked\r\n\r\n1;x\r\n%.1s\r\n%x\r\n%s\r\n0\r\n\r\n", tt.body+"x", len(tt.body)-1, tt.body[min(1, len(tt.body)):]),
			} {
				if framing == "Transfer-Encoding" && len(tt.body) < 2 {
					continue
				}
				value, _, _ := strings.Cut(text, "\r\n")
				want.Headers = map[string]string{framing: value}
				for name, value := range headers {
					want.Headers[name] = value
				}
				got := anythingOf(t, s, tt.method+" "+tt.target+" HTTP/1.1\r\n"+lines+framing+": "+text)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got\n%+v\nwant\n%+v", framing, got, want)
				}
			}
		})
	}
}

// TestAnythingText checks the bytes, which httpbin indents by two spaces.
func TestAnythingText(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	const body = `{
  "args": {
    "q": "<1>"
  },
  "data": "{\"n\": 12345678901234567890}",
  "files": {},
  "form": {},
  "headers": {
    "Content-Length": "27",
    "Host": "a",
    "X-Forwarded-For": "192.0.2.1, 192.0.2.2"
  },
  "json": {
    "n": 12345678901234567890
  },
  "method": "POST",
  "origin": "192.0.2.1, 192.0.2.2",
  "url": "http://a/anything/x?q=%3C1%3E"
}
`
	const request = " /anything/x?q=%3C1%3E HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nContent-Length: 27\r\n\r\n{\"n\": 12345678901234567890}"
	want := whole("200 OK", "application/json", "keep-alive", body)
	if got := exchange(t, s, "POST"+request); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	head := exchange(t, s, "HEAD"+request)
	if want := strings.TrimSuffix(whole("200 OK", "application/json", "keep-alive", body), body); head != want {
		t.Errorf("HEAD: got\n%s\nwant\n%s", head, want)
	}
}

// TestAnythingPaths tells which paths are answered like that.
func TestAnythingPaths(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{
		"/anything": true, "/anything/": true, "/anything/x": true, "/anything?x": true,
		"/anythingelse": false, "/hello": false, "/": false, "/x/anything": false, "*": false,
	} {
		if got := isAnything([]byte(target)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	got, ok := originForm([]byte("http://example.org/anything/x"))
	if !ok || !isAnything(got) {
		t.Errorf("whole URL: %q, %v", got, ok)
	}
	if got, ok := originForm([]byte("http://example.org?q")); !ok || string(got) != "/?q" {
		t.Errorf("URL without path: %q, %v", got, ok)
	}
}

// FuzzAnything makes sure that any body is answered with JSON.
func FuzzAnything(f *testing.F) {
	f.Add("application/json", []byte(`{"a":1e999}`), "/anything?x")
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\n\r\n\r\n--x--"), "/anything")
	f.Add("application/x-www-form-urlencoded", []byte("a=\xff"), "/anything/\xff")
	f.Fuzz(func(t *testing.T, contentType string, body []byte, target string) {
		r := request{method: []byte("POST"), target: []byte(target), header: []byte("Content-Type: " + contentType + "\r\nX\xff: \xff\r\n\r\n")}
		var a anythingAnswer
		dec := json.NewDecoder(bytes.NewReader(anything(&r, body, "peer")))
		dec.UseNumber()
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Method != "POST" || a.Origin != "peer" {
			t.Errorf("answer %+v", a)
		}
	})
}
