package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"armrepro/upstream/http1"
)

// outcome is what reading one response from the beginning of a stream came to.
type outcome struct {
	used      int
	complete  bool
	status    int
	keepAlive bool
	err       error
}

// readResponse feeds stream to a parser in pieces of size bytes, and ends it.
func readResponse(stream []byte, bodiless bool, size int) outcome {
	p := parser{bodiless: bodiless}
	var o outcome
	for o.used < len(stream) && !o.complete && o.err == nil {
		var n int
		n, o.complete, o.err = p.feed(stream[o.used:min(o.used+size, len(stream))])
		o.used += n
	}
	if o.err != nil {
		return outcome{err: o.err}
	}
	o.complete = o.complete || p.end()
	o.status, o.keepAlive = p.status, p.KeepAlive() && !p.end()
	if !o.complete {
		// Nothing of it counts.
		return outcome{used: o.used}
	}
	return o
}

func TestParser(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	tests := []struct {
		name, stream string
		head         bool
		// rest is what has to be left of stream.
		rest       string
		status     int
		closes     bool
		incomplete bool
		err        error
	}{
		{name: "length", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", status: 200},
		{name: "length 0", stream: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200},
		{name: "extra bytes", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1", rest: "HTTP/1.1", status: 200},
		{name: "same length twice", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc", status: 200},
		{name: "chunked", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n", status: 200},
		{name: "extensions and trailers", stream: "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1;a=" + long + "\r\nx\r\n0;b\r\nT: " + long + "\r\n\r\n", status: 200},
		{name: "extra bytes after chunks", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n", rest: "\r\n", status: 200},
		{name: "chunked and length", stream: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 200},
		{name: "until close", stream: "HTTP/1.1 200 OK\r\n\r\nwhatever", status: 200, closes: true},
		{name: "until close, keep-alive", stream: "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", status: 200, closes: true},
		{name: "close", stream: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", status: 200, closes: true},
		{name: "close among others", stream: "HTTP/1.1 200 OK\r\nConnection: a, Close ,b\r\nContent-Length: 1\r\n\r\na", status: 200, closes: true},
		{name: "1.0", stream: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", status: 200, closes: true},
		{name: "1.0 keep-alive", stream: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", status: 200},
		{name: "1.0 both", stream: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", status: 200, closes: true},
		{name: "1.0 until close", stream: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc", status: 200, closes: true},
		{name: "no reason", stream: "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", status: 404},
		{name: "empty reason", stream: "HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n", status: 503},
		{name: "long reason", stream: "HTTP/1.1 200 " + long + "\r\nContent-Length: 0\r\n\r\n", status: 200},
		{name: "long length", stream: "HTTP/1.1 200 OK\r\nContent-Length: " + strings.Repeat("0", 300) + "1\r\n\r\na", status: 200},
		{name: "long connection", stream: "HTTP/1.1 200 OK\r\nConnection: " + long + ", close\r\nContent-Length: 1\r\n\r\na", status: 200, closes: true},
		{name: "unknown status", stream: "HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n", status: 999},
		{name: "204 with length", stream: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nrest", rest: "rest", status: 204},
		{name: "304 with length", stream: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", status: 304},
		{name: "304 chunked", stream: "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", status: 304},
		{name: "HEAD", head: true, stream: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", status: 200},
		{name: "HEAD without length", head: true, stream: "HTTP/1.1 200 OK\r\n\r\n", status: 200},
		{name: "HEAD chunked, close", head: true, stream: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nx", rest: "x", status: 200, closes: true},
		{name: "interim", stream: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", status: 200},
		{name: "interim to HEAD", head: true, stream: "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", status: 200},
		{name: "LF alone", stream: "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", status: 200},
		{name: "long header", stream: "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 1\r\n\r\na", status: 200},
		{name: "long header name", stream: "HTTP/1.1 200 OK\r\n" + long + ": 1\r\nContent-Length: 1\r\n\r\na", status: 200},
		{name: "spaces around values", stream: "HTTP/1.1 200 OK\r\nContent-Length:\t 1 \t\r\nConnection:close\r\n\r\na", status: 200, closes: true},
		{name: "folded header", stream: "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tContent-Length: 9\r\nContent-Length: 1\r\n\r\na", status: 200},
		{name: "headers like those that matter", stream: "HTTP/1.1 200 OK\r\nX-Content-Length: 7\r\nContent-Lengthy: 7\r\nContent-Length: 1\r\nConnection-X: close\r\n\r\na", status: 200},

		{name: "nothing", stream: "", incomplete: true},
		{name: "half a status line", stream: "HTTP/1.1 20", incomplete: true},
		{name: "half a header", stream: "HTTP/1.1 200 OK\r\nConten", incomplete: true},
		{name: "no end of header", stream: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", incomplete: true},
		{name: "half a body", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", incomplete: true},
		{name: "half a chunk", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", incomplete: true},
		{name: "no trailer", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", incomplete: true},
		{name: "interim alone", stream: "HTTP/1.1 100 Continue\r\n\r\n", incomplete: true},
		{name: "largest length", stream: "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\na", incomplete: true},

		{name: "garbage", stream: "SSH-2.0-OpenSSH_9.2p1\r\n", err: errNoStatus},
		{name: "TLS alert", stream: "\x15\x03\x01\x00\x02\x02\x0a\n", err: errNoStatus},
		{name: "zeros", stream: strings.Repeat("\x00", 1<<17), err: errNoStatus},
		{name: "HTTP/2", stream: "HTTP/2 200\r\n\r\n", err: errNoStatus},
		{name: "garbage without a line end", stream: "HTTP/2garbage", err: errNoStatus},
		{name: "zero byte in a header", stream: "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", err: errControl},
		{name: "bare CR in a header", stream: "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", err: errControl},
		{name: "HTTP/2.0", stream: "HTTP/2.0 200 OK\r\n\r\n", err: errNoStatus},
		{name: "lower case", stream: "http/1.1 200 OK\r\n\r\n", err: errNoStatus},
		{name: "empty first line", stream: "\r\nHTTP/1.1 200 OK\r\n\r\n", err: errNoStatus},
		{name: "no status", stream: "HTTP/1.1 OK\r\n\r\n", err: errNoStatus},
		{name: "status of two digits", stream: "HTTP/1.1 20 OK\r\n\r\n", err: errBadStatus},
		{name: "status of four digits", stream: "HTTP/1.1 2000 OK\r\n\r\n", err: errBadStatus},
		{name: "status below 100", stream: "HTTP/1.1 099 Low\r\n\r\n", err: errBadStatus},
		{name: "negative status", stream: "HTTP/1.1 -20 OK\r\n\r\n", err: errBadStatus},
		{name: "upgrade nobody asked for", stream: "HTTP/1.1 101 Switching Protocols\r\n\r\n", err: errUpgrade},
		{name: "header without colon", stream: "HTTP/1.1 200 OK\r\nabc\r\n\r\n", err: errNoHeader},
		{name: "header without name", stream: "HTTP/1.1 200 OK\r\n: abc\r\n\r\n", err: errNoHeader},
		{name: "space before colon", stream: "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc", err: errNoHeader},
		{name: "space before first header", stream: "HTTP/1.1 200 OK\r\n Content-Length: 3\r\n\r\nabc", err: errFolded},
		{name: "folded length", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n 4\r\n\r\nabc", err: errFolded},
		{name: "folded connection", stream: "HTTP/1.1 200 OK\r\nConnection: keep-alive,\r\n close\r\n\r\n", err: errFolded},
		{name: "folded coding", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , gzip\r\n\r\n", err: errFolded},
		{name: "two lengths", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", err: http1.ErrTwoLengths},
		{name: "list of lengths", stream: "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", err: http1.ErrLength},
		{name: "negative length", stream: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", err: http1.ErrLength},
		{name: "length overflows", stream: "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\na", err: http1.ErrLength},
		{name: "no length", stream: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", err: http1.ErrLength},
		{name: "long coding", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked" + long + "\r\n\r\n", err: http1.ErrCoding},
		{name: "other coding", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", err: http1.ErrCoding},
		{name: "chunked twice", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: http1.ErrCoding},
		{name: "1.0 chunked", stream: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: errChunkedIn10},
		{name: "chunk size overflows", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", err: http1.Error("chunk size is not a hexadecimal number below 2^63")},
		{name: "endless status line", stream: "HTTP/1.1 200 " + strings.Repeat("x", 1<<17), err: http1.Error("header section over 64 KiB")},
		{name: "endless header", stream: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 20000), err: http1.Error("header section over 64 KiB")},
		{name: "endless header line", stream: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<17), err: http1.Error("header section over 64 KiB")},
		{name: "endless chunk line", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 1<<13), err: http1.Error("chunk size line over 4 KiB")},
		{name: "endless trailer", stream: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20000), err: http1.Error("trailer section over 64 KiB")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := outcome{used: len(tt.stream) - len(tt.rest), complete: true, status: tt.status, keepAlive: !tt.closes}
			if tt.incomplete {
				want = outcome{used: len(tt.stream)}
			}
			if tt.err != nil {
				want = outcome{err: tt.err}
			}
			for _, size := range []int{len(tt.stream) + 1, 1, 2, 3, 5, 64, 255, 256, 257, 4096} {
				if got := readResponse([]byte(tt.stream), tt.head, size); got != want {
					t.Fatalf("in pieces of %d: %+v, want %+v", size, got, want)
				}
			}
		})
	}
}

// TestParserEverySplit cuts answers of every framing in two at every byte, and
// reads two of them with the same parser.
func TestParserEverySplit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 400)
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 10\r\n\r\n1234567890",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;" + long + "\r\n1234567890\r\n0\r\nT: " + long + "\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n" + long + ": 1\r\n\r\n",
	} {
		for at := range len(answer) + 1 {
			var p parser
			for range 2 {
				if err := feedBoth(&p, answer[:at], answer[at:]); err != nil {
					t.Fatalf("%.40q split at %d: %v", answer, at, err)
				}
				p.reset()
			}
		}
	}
}

// feedBoth feeds an answer in two pieces; it has to be complete with the last
// byte.
func feedBoth(p *parser, first, second string) error {
	done := false
	for _, piece := range []string{first, second} {
		if done && piece != "" {
			return errors.New("complete before its end")
		}
		used, d, err := p.feed([]byte(piece))
		if err != nil {
			return err
		}
		if used != len(piece) {
			return fmt.Errorf("used %d of %d bytes", used, len(piece))
		}
		done = done || d
	}
	if !done {
		return errors.New("not complete at its end")
	}
	if !p.KeepAlive() {
		return errors.New("no keep-alive")
	}
	return nil
}

// TestParserStarted says when a closed connection is an error.
func TestParserStarted(t *testing.T) {
	t.Parallel()
	var p parser
	for _, step := range []struct {
		feed string
		want bool
	}{
		{"", false},
		{"H", true},
		{"TTP/1.1 100 Continue\r\n\r\n", true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	} {
		if _, _, err := p.feed([]byte(step.feed)); err != nil {
			t.Fatal(err)
		}
		if p.started() != step.want {
			t.Errorf("after %q: started is %v", step.feed, p.started())
		}
	}
	if p.reset(); p.started() {
		t.Error("started after reset")
	}
}

// TestParserMemory feeds what never ends: nothing may be kept of it.
func TestParserMemory(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, endless := range map[string][2]string{
		"interim answers": {"", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"},
		"chunks":          {head, "1;" + strings.Repeat("e", 300) + "\r\na\r\n"},
		"one chunk":       {head + "7fffffffffffffff\r\n", strings.Repeat("a", 1000)},
		"until close":     {"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("a", 1000)},
	} {
		var p parser
		if _, _, err := p.feed([]byte(endless[0])); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		piece := []byte(endless[1])
		allocs := testing.AllocsPerRun(10000, func() {
			if used, done, err := p.feed(piece); used != len(piece) || done || err != nil {
				t.Fatalf("%s: used %d of %d, done %v, %v", name, used, len(piece), done, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a piece", name, allocs)
		}
	}
}

func BenchmarkParser(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n" +
		"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: APISIX/2.15.0\r\n\r\na\r\n1234567890\r\n0\r\n\r\n")
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	var p parser
	for b.Loop() {
		if used, done, err := p.feed(answer); used != len(answer) || !done || err != nil {
			b.Fatal(used, done, err)
		}
		p.reset()
	}
}
