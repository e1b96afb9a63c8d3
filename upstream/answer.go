package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"armrepro/upstream/http1"
)

// anythingPath is where the published benchmarks' test route leads.
const anythingPath = "/anything"

// serverName is the Server header. A gateway replaces it by its own.
const serverName = "armrepro-upstream"

// answers are the answers that never change but for their date.
type answers struct {
	second int64
	date   []byte
	hello  []byte
}

// refresh renews the date, once a second.
func (a *answers) refresh(now time.Time) {
	if now.Unix() == a.second {
		return
	}
	a.second = now.Unix()
	a.date = now.UTC().AppendFormat(a.date[:0], http.TimeFormat)
	a.hello = fmt.Appendf(a.hello[:0], "HTTP/1.1 200 OK\r\nServer: %s\r\nDate: %s\r\n"+
		"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"+
		"%x\r\n%s\r\n0\r\n\r\n", serverName, a.date, len(Body), Body)
}

// appendAnswer appends the answer to r, whose body is known by then.
func (a *answers) appendAnswer(out []byte, r *request, body []byte, peer string) []byte {
	if isAnything(r.target) {
		return a.appendWhole(out, 200, "application/json", anything(r, body, peer), r)
	}
	if !r.HTTP10 && r.KeepAlive() && string(r.method) != "HEAD" {
		return append(out, a.hello...)
	}
	return a.appendWhole(out, 200, "text/plain", []byte(Body), r)
}

// appendError appends an answer that refuses a request and closes the
// connection.
func (a *answers) appendError(out []byte, status int) []byte {
	body := fmt.Appendf(nil, "%d %s\n", status, http.StatusText(status))
	contentType := "text/plain"
	if status == http.StatusMethodNotAllowed {
		contentType += "\r\nAllow: " + allowed
	}
	return a.appendWhole(out, status, contentType, body, &request{Framing: http1.Framing{Closes: true}})
}

// appendWhole appends an answer with a Content-Length, which HTTP/1.0 needs.
func (a *answers) appendWhole(out []byte, status int, contentType string, body []byte, r *request) []byte {
	connection := "close"
	if r.KeepAlive() {
		connection = "keep-alive"
	}
	out = fmt.Appendf(out, "HTTP/1.1 %d %s\r\nServer: %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n",
		status, http.StatusText(status), serverName, a.date, contentType, len(body), connection)
	if string(r.method) == "HEAD" {
		return out
	}
	return append(out, body...)
}

func isAnything(target []byte) bool {
	rest, ok := bytes.CutPrefix(target, []byte(anythingPath))
	return ok && (len(rest) == 0 || rest[0] == '/' || rest[0] == '?')
}

// anythingAnswer is what httpbin tells about a request on /anything.
type anythingAnswer struct {
	Args    map[string]any    `json:"args"`
	Data    string            `json:"data"`
	Files   map[string]any    `json:"files"`
	Form    map[string]any    `json:"form"`
	Headers map[string]string `json:"headers"`
	JSON    any               `json:"json"`
	Method  string            `json:"method"`
	Origin  string            `json:"origin"`
	URL     string            `json:"url"`
}

// anything echoes the request as httpbin does.
func anything(r *request, body []byte, peer string) []byte {
	header := readHeader(r.header)
	a := anythingAnswer{
		Args:    map[string]any{},
		Files:   map[string]any{},
		Form:    map[string]any{},
		Headers: map[string]string{},
		Method:  string(r.method),
		Origin:  peer,
		URL:     "http://" + header.Get("Host") + string(r.target),
	}
	for name, values := range header {
		a.Headers[name] = strings.Join(values, ",")
	}
	if forwarded := header.Get("X-Forwarded-For"); forwarded != "" {
		a.Origin = forwarded
	}
	if u, err := url.ParseRequestURI(string(r.target)); err == nil {
		a.Args = flat(u.Query())
	}
	a.readBody(header, body)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	// Nothing in it can fail to encode: strings, and JSON read from the body.
	_ = enc.Encode(a)
	return out.Bytes()
}

// readHeader reads header lines that parseRequest has accepted.
func readHeader(lines []byte) http.Header {
	header := http.Header{}
	for line := range bytes.Lines(lines) {
		if name, value, ok := bytes.Cut(line, []byte{':'}); ok {
			value = bytes.TrimRight(value, "\r\n")
			header.Add(string(name), string(http1.TrimSpace(value)))
		}
	}
	return header
}

// readBody tells forms, files and JSON apart by the content type.
func (a *anythingAnswer) readBody(header http.Header, body []byte) {
	// POST is the method whose form net/http reads.
	r := http.Request{Method: http.MethodPost, Header: header, Body: io.NopCloser(bytes.NewReader(body))}
	if r.ParseForm() == nil && len(r.PostForm) > 0 {
		a.Form = flat(r.PostForm)
	} else if r.ParseMultipartForm(maxBody) == nil {
		a.Form, a.Files = flat(r.MultipartForm.Value), flat(contents(r.MultipartForm.File))
	} else {
		a.Data, a.JSON = text(body), readJSON(body)
	}
}

// contents are the files' contents, which are in memory.
func contents(files map[string][]*multipart.FileHeader) map[string][]string {
	out := map[string][]string{}
	for name, headers := range files {
		for _, h := range headers {
			var content []byte
			if f, err := h.Open(); err == nil {
				content, _ = io.ReadAll(f)
			}
			out[name] = append(out[name], text(content))
		}
	}
	return out
}

// text is body as a JSON string can hold it: what isn't UTF-8 as a data URL.
func text(body []byte) string {
	if utf8.Valid(body) {
		return string(body)
	}
	return "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(body)
}

// readJSON returns the JSON value that body is, its numbers as they are
// written, or nil.
func readJSON(body []byte) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.Decode(new(any)) != io.EOF {
		return nil
	}
	return v
}

// flat gives a name with one value that value, and one with several a list, as
// httpbin does.
func flat(values map[string][]string) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		if len(v) == 1 {
			out[name] = v[0]
		} else {
			out[name] = v
		}
	}
	return out
}
