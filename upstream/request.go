package upstream

import (
	"bytes"
	"regexp"

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
	http1.Framing
	method  []byte
	target  []byte
	header  []byte
	hasHost bool
	expects bool
}

// parseRequest reads the head of a request that data begins with. It returns
// how many bytes belong to it, or 0 if it is not complete; and the status to
// refuse it with, or 0.
func parseRequest(data []byte) (r request, used, status int) {
	headerAt, returns := 0, 0
	for {
		line, n, crlf := http1.CutLine(data[used:])
		first := used == 0
		if n == 0 {
			return r, 0, tooLarge(len(data), first)
		}
		used += n
		if crlf {
			returns++
		}
		switch {
		case used > maxHead:
			return r, used, tooLarge(used, first)
		case first:
			status = r.requestLine(line)
			headerAt = used
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
	if !r.Version(version) {
		if anyVersion.Match(version) {
			return 505
		}
		return 400
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

var anyVersion = regexp.MustCompile(`^HTTP/\d\.\d$`)

// allowed is the Allow header for a method that is not.
const allowed = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"

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
	if colon <= 0 || bytes.IndexAny(line[:colon], " \t") >= 0 {
		return 400
	}
	name, value := line[:colon], line[colon+1:]
	switch {
	case http1.EqualFold(name, "host"):
		if r.hasHost {
			return 400
		}
		r.hasHost = true
	case http1.EqualFold(name, "expect"):
		r.expects = !r.HTTP10 && http1.EqualFold(http1.TrimSpace(value), "100-continue")
	default:
		switch _, err := r.Field(name, value); {
		case err == http1.ErrCoding && !r.Chunked:
			return 501
		case err != nil:
			return 400
		}
	}
	return 0
}

// check looks at the head as a whole.
func (r *request) check() (status int) {
	switch {
	case !r.hasHost && !r.HTTP10,
		r.Chunked && (r.HasLength || r.HTTP10):
		// A length told twice is how requests are smuggled.
		return 400
	case r.Length > maxBody:
		return 413
	}
	return 0
}
