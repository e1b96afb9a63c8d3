package upstream

import (
	"bytes"

	"armrepro/upstream/http1"
)

const (
	// maxHead bounds a request's head; nginx's default is 32 KB.
	maxHead = 32 << 10
	// maxBody bounds a request's body, as nginx's client_max_body_size.
	maxBody = 1 << 20
)

// request is the head of a request. It refers to the bytes that it was read
// from.
type request struct {
	method []byte
	target []byte
	header []byte
	length uint64

	http10    bool
	closes    bool
	keeps     bool
	hasHost   bool
	hasLength bool
	chunked   bool
	expects   bool
}

// keepAlive says whether the connection stays open after the answer.
func (r *request) keepAlive() bool { return !r.closes && (!r.http10 || r.keeps) }

// parseRequest reads the head of a request that data begins with. It returns
// how many bytes belong to it, or 0 if it is not complete; and the status to
// refuse it with, or 0.
func parseRequest(data []byte) (r request, used, status int) {
	first := true
	headerAt, returns := 0, 0
	for {
		end := bytes.IndexByte(data[used:], '\n')
		if end < 0 {
			return r, 0, tooLarge(len(data), first)
		}
		line := data[used : used+end]
		used += end + 1
		if end > 0 && line[end-1] == '\r' {
			line = line[:end-1]
			returns++
		}
		switch {
		case used > maxHead:
			return r, used, tooLarge(used, first)
		case first:
			status = r.requestLine(line)
			first, headerAt = false, used
		case len(line) == 0:
			r.header = data[headerAt:used]
			if bytes.Count(data[:used], []byte{'\r'}) != returns || bytes.IndexByte(r.header, 0) >= 0 {
				return r, used, 400 // Neither may be in a value (RFC 9110, 5.5).
			}
			return r, used, r.check()
		default:
			status = r.headerLine(line)
		}
		if status != 0 {
			return r, used, status
		}
	}
}

// emptyLines counts the bytes of line ends that data begins with: before a
// request they are to be ignored (RFC 9112, 2.2).
func emptyLines(data []byte) int {
	n := 0
	for n < len(data) && (data[n] == '\r' || data[n] == '\n') {
		n++
	}
	return n
}

// tooLarge is the status for a head of n bytes so far, or 0.
func tooLarge(n int, inRequestLine bool) int {
	switch {
	case n <= maxHead:
		return 0
	case inRequestLine:
		return 414
	}
	return 431
}

// requestLine reads "GET /hello HTTP/1.1".
func (r *request) requestLine(line []byte) (status int) {
	method, rest, ok := bytes.Cut(line, []byte{' '})
	target, version, ok2 := bytes.Cut(rest, []byte{' '})
	if !ok || !ok2 || !isMethod(method) {
		return 400
	}
	if status := r.version(version); status != 0 {
		return status
	}
	r.method = method
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS":
	default:
		return 405
	}
	if r.target, ok = originForm(target); !ok {
		return 400
	}
	return 0
}

// allowed is the Allow header for a method that is not.
const allowed = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"

// version reads "HTTP/1.1". A higher minor version is answered as 1.1 (RFC 9110,
// 2.5).
func (r *request) version(b []byte) (status int) {
	const form = "HTTP/1.1"
	if len(b) != len(form) || string(b[:5]) != form[:5] || b[6] != '.' || !isDigit(b[5]) || !isDigit(b[7]) {
		return 400
	}
	if b[5] != '1' {
		return 505
	}
	r.http10 = b[7] == '0'
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// originForm returns the path and query of a target, which a client may also
// send as a whole URL; and whether the target is one.
func originForm(target []byte) ([]byte, bool) {
	for _, c := range target {
		if c <= ' ' || c == 0x7f {
			return nil, false
		}
	}
	if len(target) == 0 {
		return nil, false
	}
	if target[0] == '/' || string(target) == "*" {
		return target, true
	}
	_, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok {
		return nil, false
	}
	switch i := bytes.IndexAny(rest, "/?"); {
	case i < 0:
		return []byte{'/'}, true
	case rest[i] == '?':
		return append([]byte{'/'}, rest[i:]...), true
	default:
		return rest[i:], true
	}
}

func isMethod(b []byte) bool {
	for _, c := range b {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(b) > 0
}

// headerLine reads the headers that decide how to go on.
func (r *request) headerLine(line []byte) (status int) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || bytes.IndexAny(line[:colon], " \t\x00") >= 0 {
		return 400
	}
	name, value := line[:colon], http1.TrimSpace(line[colon+1:])
	switch len(name) {
	case len("host"):
		if http1.EqualFold(name, "host") {
			if r.hasHost {
				return 400
			}
			r.hasHost = true
		}
	case len("expect"):
		if http1.EqualFold(name, "expect") {
			r.expects = !r.http10 && http1.EqualFold(value, "100-continue")
		}
	case len("connection"):
		if http1.EqualFold(name, "connection") {
			r.closes = r.closes || http1.HasToken(value, "close")
			r.keeps = r.keeps || http1.HasToken(value, "keep-alive")
		}
	case len("content-length"):
		if http1.EqualFold(name, "content-length") {
			return r.contentLength(value)
		}
	case len("transfer-encoding"):
		if http1.EqualFold(name, "transfer-encoding") {
			return r.transferEncoding(value)
		}
	}
	return 0
}

func (r *request) contentLength(value []byte) (status int) {
	n, ok := http1.ParseLength(value)
	if !ok || r.hasLength && n != r.length {
		return 400
	}
	r.hasLength, r.length = true, n
	return 0
}

func (r *request) transferEncoding(value []byte) (status int) {
	if r.chunked {
		return 400
	}
	if !http1.EqualFold(value, "chunked") {
		return 501
	}
	r.chunked = true
	return 0
}

// check looks at the head as a whole.
func (r *request) check() (status int) {
	switch {
	case !r.hasHost && !r.http10,
		r.chunked && (r.hasLength || r.http10):
		// A length told twice is how requests are smuggled.
		return 400
	case r.length > maxBody:
		return 413
	}
	return 0
}
