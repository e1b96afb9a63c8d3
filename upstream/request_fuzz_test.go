package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
)

// FuzzRequests checks that the pieces in which requests arrive do not matter,
// whatever they are.
func FuzzRequests(f *testing.F) {
	for _, r := range requests {
		if len(r.text) < 1000 {
			f.Add([]byte(r.text), uint16(0))
		}
	}
	f.Add([]byte("POST /anything HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":[1]}GET / HTTP/1.0\r\n\r\n"), uint16(3))
	f.Fuzz(func(t *testing.T, text []byte, size uint16) {
		whole, c := answerPieces(text, len(text)+1)
		pieces, c2 := answerPieces(text, int(size)+1)
		if whole != pieces || c.closing != c2.closing || c.idle() != c2.idle() {
			t.Errorf("whole: closing %v, idle %v, answer\n%q\nin pieces of %d: closing %v, idle %v, answer\n%q",
				c.closing, c.idle(), whole, int(size)+1, c2.closing, c2.idle(), pieces)
		}
		if n := max(cap(c.in), cap(c2.in)); n > 4*maxHead+2*len(text) {
			t.Errorf("%d bytes are kept of %d", n, len(text))
		}
	})
}

// parsed is what one request came to.
type parsed struct {
	method, target string
	keepAlive      bool
	used, body     int
}

// FuzzRequest compares with net/http's reader: where both accept a request,
// they agree on where it ends, on what it asks for and on what happens to the
// connection.
func FuzzRequest(f *testing.F) {
	for _, r := range requests {
		if len(r.text) < 1000 {
			f.Add([]byte(r.text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, ok := ourRequest(text)
		theirs, ok2 := theirRequest(text)
		if ok && ok2 && ours != theirs {
			t.Errorf("%+v; net/http reads %+v", ours, theirs)
		}
	})
}

func ourRequest(text []byte) (parsed, bool) {
	r, used, status := parseRequest(text)
	if status != 0 || used == 0 {
		return parsed{}, false
	}
	p := parsed{method: string(r.method), target: string(r.target), keepAlive: r.KeepAlive(), used: used}
	if !r.Chunked && r.Length == 0 {
		return p, true
	}
	body := newPending(text[:used])
	n, done, status := body.read(text[used:])
	p.used += n
	p.body = body.size
	return p, done && status == 0
}

func theirRequest(text []byte) (parsed, bool) {
	source := bytes.NewReader(text)
	buffered := bufio.NewReader(source)
	r, err := http.ReadRequest(buffered)
	if err != nil {
		return parsed{}, false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return parsed{}, false
	}
	target := r.RequestURI
	if r.URL.Host != "" {
		// parseRequest cuts a whole URL to its path.
		path, ok := originForm([]byte(target))
		if !ok {
			return parsed{}, false
		}
		target = string(path)
	}
	return parsed{
		method: r.Method, target: target, keepAlive: !r.Close,
		used: len(text) - source.Len() - buffered.Buffered(), body: len(body),
	}, true
}
