package load

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzParser compares with net/http's reader: where both accept a response,
// they agree on where it ends, on its status and on what happens to the
// connection. And the pieces in which it arrives do not matter.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;x=y\r\n1234567890\r\n0\r\nT: v\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nffffffffffffffff\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nrest",
		"HTTP/1.1 304 Not Modified\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
		"HTTP/1.1 200 OK\nContent-Length: 3\nContent-Length: 4\n\nabc",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nConnection: keep-alive, close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("long", 100) + "\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("a", 255) + ": b\r\nContent-Length : 1\r\n\r\na",
		"garbage\r\n",
	} {
		f.Add([]byte(seed), false, uint16(0))
		f.Add([]byte(seed), true, uint16(255))
	}
	f.Fuzz(func(t *testing.T, stream []byte, head bool, size uint16) {
		whole := readResponse(stream, head, len(stream)+1)
		if pieces := readResponse(stream, head, int(size)+1); pieces != whole {
			t.Fatalf("whole: %+v; in pieces of %d: %+v", whole, int(size)+1, pieces)
		}
		theirs, ok := theirResponse(stream, head)
		if ok && whole.complete && whole != theirs {
			t.Fatalf("%+v; net/http reads %+v", whole, theirs)
		}
	})
}

// theirResponse reads a response as net/http does, and whether it could.
func theirResponse(stream []byte, head bool) (outcome, bool) {
	source := bytes.NewReader(stream)
	buffered := bufio.NewReader(source)
	request := &http.Request{Method: http.MethodGet}
	if head {
		request.Method = http.MethodHead
	}
	response, err := http.ReadResponse(buffered, request)
	for err == nil && response.StatusCode >= 100 && response.StatusCode < 200 {
		response, err = http.ReadResponse(buffered, request)
	}
	if err != nil {
		return outcome{}, false
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return outcome{}, false
	}
	return outcome{
		used:      len(stream) - source.Len() - buffered.Buffered(),
		complete:  true,
		status:    response.StatusCode,
		keepAlive: !response.Close,
	}, true
}
