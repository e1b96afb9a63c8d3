package upstream

import (
	"strings"
	"testing"
	"time"
)

// requests are what clients may send, and what all of it is answered.
var requests = []struct {
	name, text, answer string
}{
	{"GET", "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", hello},
	{"other path", "GET /x/y?z HTTP/1.1\r\nHost: a\r\n\r\n", hello},
	{"POST without body", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", hello},
	{"POST", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", hello},
	{"POST, chunked", "POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n", hello},
	{"POST, same length twice", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", hello},
	{"GET with body", "GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", hello},
	{"other methods", "PUT / HTTP/1.1\r\nHost: a\r\n\r\nDELETE / HTTP/1.1\r\nHost: a\r\n\r\nPATCH / HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", hello + hello + hello + hello},
	{"keep-alive", "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", hello},
	{"pipelined", strings.Repeat("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 20), strings.Repeat(hello, 20)},
	{"pipelined with bodies", strings.Repeat("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 5) + "GET / HTTP/1.1\r\nHost: a\r\n\r\n", strings.Repeat(hello, 6)},
	{"LF alone", "GET /hello HTTP/1.1\nHost: a\n\n", hello},
	{"empty lines before", "\r\n\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n\r\n", hello},
	{"later minor version", "GET /hello HTTP/1.9\r\nHost: a\r\n\r\n", hello},
	{"empty host", "GET /hello HTTP/1.1\r\nHost:\r\n\r\n", hello},
	{"whole URL", "GET http://example.org/hello HTTP/1.1\r\nHost: a\r\n\r\n", hello},
	{"unknown expectation", "GET /hello HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", hello},
	{"expectation without body", "GET /hello HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", hello},
	{"expectation", "POST /hello HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 100 Continue\r\n\r\n" + hello},
	{"largest head", "GET /hello HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", maxHead-40) + "\r\n\r\n", hello},
	{"largest body", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", maxBody), hello},

	{"HEAD", "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n", strings.TrimSuffix(whole("200 OK", "text/plain", "keep-alive", Body), Body)},
	{"close", "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /ignored HTTP/1.1\r\nHost: a\r\n\r\n", whole("200 OK", "text/plain", "close", Body)},
	{"close among others", "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", whole("200 OK", "text/plain", "close", Body)},
	{"HTTP/1.0", "GET /hello HTTP/1.0\r\n\r\n", whole("200 OK", "text/plain", "close", Body)},
	{"HTTP/1.0 keep-alive", "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", whole("200 OK", "text/plain", "keep-alive", Body)},
	{"HTTP/1.0 expectation", "POST /hello HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na", whole("200 OK", "text/plain", "close", Body)},

	{"nothing", "", ""},
	{"half a head", "GET /hello HTTP/1.1\r\nHost: a\r\n", ""},
	{"half a body", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab", ""},

	{"garbage", "garbage\r\n", refusal("400 Bad Request")},
	{"good, then garbage", "GET /hello HTTP/1.1\r\nHost: a\r\n\r\ngarbage\r\n", hello + refusal("400 Bad Request")},
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", refusal("400 Bad Request")},
	{"HTTP/0.9", "GET /\r\n", refusal("400 Bad Request")},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", refusal("505 HTTP Version Not Supported")},
	{"HTTP/0.9, written out", "GET / HTTP/0.9\r\n\r\n", refusal("505 HTTP Version Not Supported")},
	{"bad version", "GET / HTTP/1.10\r\n", refusal("400 Bad Request")},
	{"worse version", "GET / HTTP/x.1\r\n", refusal("400 Bad Request")},
	{"lower case version", "GET / http/1.1\r\n", refusal("400 Bad Request")},
	{"lower case method", "get / HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"no method", " / HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"space before method", " GET / HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"two spaces", "GET  / HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"space in target", "GET /a b HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"space after version", "GET / HTTP/1.1 \r\n", refusal("400 Bad Request")},
	{"tab in target", "GET /a\tb HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"relative target", "GET hello HTTP/1.1\r\n", refusal("400 Bad Request")},
	{"unknown method", "BREW /coffee HTTP/1.1\r\nHost: a\r\n\r\n", refusal("405 Method Not Allowed")},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", refusal("405 Method Not Allowed")},
	{"CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", refusal("405 Method Not Allowed")},
	{"no host", "GET / HTTP/1.1\r\n\r\n", refusal("400 Bad Request")},
	{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", refusal("400 Bad Request")},
	{"header without colon", "GET / HTTP/1.1\r\nHost: a\r\nabc\r\n\r\n", refusal("400 Bad Request")},
	{"header without name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", refusal("400 Bad Request")},
	{"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", refusal("400 Bad Request")},
	{"folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", refusal("400 Bad Request")},
	{"zero in header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", refusal("400 Bad Request")},
	{"bare CR in header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", refusal("400 Bad Request")},
	{"bare CR in target", "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", refusal("400 Bad Request")},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", refusal("400 Bad Request")},
	{"list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na", refusal("400 Bad Request")},
	{"negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", refusal("400 Bad Request")},
	{"length overflows", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\na", refusal("400 Bad Request")},
	{"length and chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", refusal("400 Bad Request")},
	{"chunked and length", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", refusal("400 Bad Request")},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", refusal("400 Bad Request")},
	{"HTTP/1.0 chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", refusal("400 Bad Request")},
	{"other coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", refusal("501 Not Implemented")},
	{"bad chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", refusal("400 Bad Request")},
	{"chunk size overflows", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", refusal("400 Bad Request")},
	{"endless chunk line", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 8000), refusal("400 Bad Request")},
	{"large body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", refusal("413 Request Entity Too Large")},
	{"large body, expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1048577\r\n\r\n", refusal("413 Request Entity Too Large")},
	{"large chunked body", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + strings.Repeat("x", maxBody+1) + "\r\n0\r\n\r\n", refusal("413 Request Entity Too Large")},
	{"large head", "GET /hello HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", refusal("431 Request Header Fields Too Large")},
	{"many headers", "GET /hello HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", maxHead/6) + "\r\n", refusal("431 Request Header Fields Too Large")},
	{"large target", "GET /" + strings.Repeat("x", maxHead) + " HTTP/1.1\r\n", refusal("414 Request URI Too Long")},
	{"endless line", strings.Repeat("x", 2*maxHead), refusal("414 Request URI Too Long")},
}

// TestRequests sends each over a connection of its own.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exchange(t, s, tt.text); got != tt.answer {
				t.Errorf("answer\n%.1000q\nwant\n%.1000q", got, tt.answer)
			}
		})
	}
}

// testLoop is a loop without sockets.
func testLoop() *loop {
	l := &loop{server: &Server{timeouts: nginxTimeouts}, now: time.Unix(1e9, 0)}
	l.answers.refresh(l.now)
	return l
}

// answerPieces processes text in pieces of size bytes, as receive would, and
// returns all answers.
func answerPieces(text []byte, size int) (answer string, c *conn) {
	l := testLoop()
	c = &conn{fd: -1, open: true}
	for len(text) > 0 && !c.closing {
		n := min(size, len(text))
		// What is kept must not lie in the shared buffer.
		piece := append([]byte(nil), text[:n]...)
		l.process(c, piece)
		clear(piece)
		text = text[n:]
	}
	return maskDates(string(l.out)), c
}

// TestRequestsInPieces splits each at every byte, or at some of a long one's.
func TestRequestsInPieces(t *testing.T) {
	t.Parallel()
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := []byte(tt.text)
			for _, size := range []int{1, 2, 3, 7, 100, 4096, len(text) + 1} {
				if len(text) > maxHead && size < 100 {
					continue
				}
				if got, _ := answerPieces(text, size); got != tt.answer {
					t.Fatalf("in pieces of %d: answer\n%.1000q\nwant\n%.1000q", size, got, tt.answer)
				}
			}
			for at := 1; at < len(text); at += 1 + len(text)/500 {
				l := testLoop()
				c := &conn{fd: -1, open: true}
				for _, piece := range []string{tt.text[:at], tt.text[at:]} {
					if !c.closing {
						l.process(c, []byte(piece))
					}
				}
				if got := maskDates(string(l.out)); got != tt.answer {
					t.Fatalf("split at %d: answer\n%.1000q\nwant\n%.1000q", at, got, tt.answer)
				}
			}
		})
	}
}

// TestBytewise sends some of them byte by byte over a real connection.
func TestBytewise(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	for _, tt := range requests {
		if len(tt.text) > 200 {
			continue
		}
		conn := dial(t, s.Addrs()[0])
		for i := range len(tt.text) {
			if _, err := conn.Write([]byte{tt.text[i]}); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := make([]byte, len(tt.answer)+1000)
		n := 0
		for {
			k, err := conn.Read(got[n:])
			n += k
			if err != nil {
				break
			}
		}
		if text := maskDates(string(got[:n])); text != tt.answer {
			t.Errorf("%s: answer\n%q\nwant\n%q", tt.name, text, tt.answer)
		}
	}
}

// TestIdleKeepsNothing makes sure that a connection between requests holds no
// buffer.
func TestIdleKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 7, 1000} {
		text := "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /anything HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\n"
		_, c := answerPieces([]byte(text), size)
		if !c.idle() || cap(c.in) > 0 || cap(c.out) > 0 || c.pending != nil {
			t.Errorf("in pieces of %d: idle %v, in %d, out %d, pending %v", size, c.idle(), cap(c.in), cap(c.out), c.pending)
		}
	}
}

// TestNoAllocations proves that the usual request costs none.
func TestNoAllocations(t *testing.T) {
	l := testLoop()
	c := &conn{fd: -1, open: true}
	request := []byte("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\r\n")
	allocs := testing.AllocsPerRun(1000, func() {
		l.out = l.out[:0]
		l.process(c, request)
	})
	if allocs != 0 || maskDates(string(l.out)) != hello {
		t.Errorf("%v allocations, answer %q", allocs, l.out)
	}
}

func BenchmarkHello(b *testing.B) {
	l := testLoop()
	c := &conn{fd: -1, open: true}
	request := []byte("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		l.out = l.out[:0]
		l.process(c, request)
	}
}
