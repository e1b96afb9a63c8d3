package load

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// peerEnv makes TestPeer run: it needs wrk, and minutes.
const peerEnv = "ARMREPRO_TEST_WRK"

// counts are what both print about a run.
type counts struct {
	requests, connect, read, write, timeout, status int
	// bytes is rounded by wrk.
	bytes string
	// connections and answers are the server's own counts.
	connections, answers int64
}

func (c counts) String() string {
	return fmt.Sprintf("%7d %7d %7d %7d %7d %7d %11d %10d %10s", c.requests, c.connect, c.read, c.write, c.timeout, c.status, c.connections, c.answers, c.bytes)
}

// errorsOf leaves out what depends on how fast a run was.
func errorsOf(c counts) [5]int { return [5]int{c.connect, c.read, c.write, c.timeout, c.status} }

// peers are servers for both. Those that differ say how wrk differs.
func peers() []peer {
	closing := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n1234567890"
	list := []peer{
		{name: "behaves", handle: behave},
		{name: "chunked", handle: answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n")},
		{name: "HTTP/1.0 keep-alive", handle: answering("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na")},
		{name: "204", handle: answering("HTTP/1.1 204 No Content\r\n\r\n")},
		{name: "chunked and length", handle: answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
		{name: "closes, announced", handle: first(5, func(c *session) {
			if c.request() {
				c.answer(closing)
			}
		})},
		{name: "until close", handle: first(5, func(c *session) {
			if c.request() {
				c.answer("HTTP/1.1 200 OK\r\n\r\nabc")
			}
		})},
		{name: "closes, unannounced", handle: first(5, func(c *session) {
			if c.request() {
				c.answer(okAnswer)
			}
		})},
		{name: "404 and 503", handle: first(5, func(c *session) {
			if c.request() {
				c.answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			}
			if c.request() {
				c.answer("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			}
		})},
		{name: "interim answers", handle: first(5, func(c *session) {
			if c.request() {
				c.answer("HTTP/1.1 100 Continue\r\n\r\n" + closing)
			}
		})},
		{name: "closes on connect", handle: first(5, func(c *session) {})},
		{name: "resets on connect", handle: first(5, (*session).reset)},
		{name: "speaks first", handle: first(5, func(c *session) {
			c.send("220 mail.example ESMTP\r\n")
			c.drain()
		})},
		{name: "interim answers, keep-alive", handle: answering("HTTP/1.1 100 Continue\r\n\r\n" + okAnswer)},
		{name: "gone for a second", timed: true, outage: true, handle: behave},
		{name: "answers late (timeout 1 s)", timed: true, handle: paced(1500 * time.Millisecond)},
		{name: "never answers (timeout 1 s)", timed: true, handle: (*session).drain},
		{name: "one connection never answers", timed: true, handle: first(1, (*session).drain)},
		{name: "endless body", timed: true, handle: func(c *session) {
			if c.request() {
				c.endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1000))
			}
		}},
	}
	for _, b := range broken {
		list = append(list, peer{name: b.name, handle: first(5, func(c *session) {
			if c.request() {
				b.misbehave(c)
			}
		})})
	}
	return list
}

// peer is a server for both. A timed one takes seconds to show itself.
type peer struct {
	name   string
	handle func(*session)
	timed  bool
	outage bool
}

// run starts p's server and lets client measure it.
func (p *peer) run(t *testing.T, client func(*testing.T, *server, bool) counts) counts {
	t.Helper()
	s := listen(t, "127.0.0.1:0", p.handle)
	defer s.close()
	if p.outage {
		again := make(chan *server)
		go func() { again <- s.breakDown(t) }()
		defer func() { (<-again).close() }()
	}
	return client(t, s, p.timed)
}

// breakDown closes a server after a second, and opens another a second later.
func (s *server) breakDown(t *testing.T) *server {
	time.Sleep(time.Second)
	s.close()
	time.Sleep(time.Second)
	return listenFor(t, s.listener.Addr().String(), 0, behave)
}

func answering(text string) func(*session) {
	return func(c *session) {
		for c.request() && c.answer(text) {
		}
	}
}

// TestPeer runs wrk and this generator against the same servers and prints
// their counters side by side, the differing ones marked.
func TestPeer(t *testing.T) {
	if os.Getenv(peerEnv) == "" {
		t.Skip("set " + peerEnv + " to compare with wrk, which has to be installed")
	}
	t.Logf("%-32s      %7s %7s %7s %7s %7s %7s %11s %10s %10s", "", "requests", "connect", "read", "write", "timeout", "status", "connections", "answers", "bytes")
	for _, p := range peers() {
		theirs := p.run(t, runWrk)
		ours := p.run(t, runOurs)
		mark := " "
		if errorsOf(theirs) != errorsOf(ours) {
			mark = "*"
		}
		t.Logf("%-32s wrk  %s", mark+" "+p.name, theirs)
		t.Logf("%-32s ours %s", "", ours)
	}
}

func peerSeconds(timed bool) int {
	if timed {
		return 5
	}
	return 1
}

func runOurs(t *testing.T, s *server, timed bool) counts {
	cfg := testConfig(s.url)
	cfg.Timeout = time.Second
	cfg.Duration = time.Duration(peerSeconds(timed)) * time.Second
	m := run(t, cfg)
	var text bytes.Buffer
	if err := m.WriteWrk(&text, false); err != nil {
		t.Fatal(err)
	}
	return parseWrk(t, s, text.String())
}

func runWrk(t *testing.T, s *server, timed bool) counts {
	cmd := exec.Command("wrk", "-t1", "-c2", "--timeout", "1", "-d", strconv.Itoa(peerSeconds(timed)), s.url)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("wrk: %v: %s", err, out)
	}
	return parseWrk(t, s, string(out))
}

var wrkLines = regexp.MustCompile(`(?:(\d+) requests in .*, (\S+) read)|(?:connect (\d+), read (\d+), write (\d+), timeout (\d+))|(?:Non-2xx or 3xx responses: (\d+))`)

func parseWrk(t *testing.T, s *server, text string) counts {
	t.Helper()
	c := counts{connections: s.accepted.Load(), answers: s.answers.Load()}
	found := make([]string, 8)
	for _, match := range wrkLines.FindAllStringSubmatch(text, -1) {
		for i, group := range match {
			found[i] = cmp.Or(group, found[i])
		}
	}
	c.bytes = found[2]
	for i, field := range []*int{1: &c.requests, 3: &c.connect, 4: &c.read, 5: &c.write, 6: &c.timeout, 7: &c.status} {
		if field == nil || found[i] == "" {
			continue
		}
		n, err := strconv.Atoi(found[i])
		if err != nil {
			t.Fatal(err)
		}
		*field = n
	}
	return c
}

// TestPeerFormat compares the shape of both outputs: the same after every
// number has become a 9.
func TestPeerFormat(t *testing.T) {
	if os.Getenv(peerEnv) == "" {
		t.Skip("set " + peerEnv + " to compare with wrk, which has to be installed")
	}
	s := serve(t, paced(2*time.Millisecond))
	out, err := exec.Command("wrk", "-t2", "-c4", "-d1", "--latency", s.url).Output()
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections, cfg.Duration = 2, 4, time.Second
	r := &Runner{cfg: cfg}
	var ours bytes.Buffer
	if err := r.WriteHeader(&ours); err != nil {
		t.Fatal(err)
	}
	if err := run(t, cfg).WriteWrk(&ours, true); err != nil {
		t.Fatal(err)
	}
	a, b := shape(string(out)), shape(ours.String())
	if !slices.Equal(a, b) {
		t.Errorf("wrk prints:\n%s\nours:\n%s", out, ours.String())
	}
}

// TestPeerLatency compares the percentiles of a server that takes a known time:
// 2 ms mostly, 10 ms for a fifth, 40 ms for one in fifty.
func TestPeerLatency(t *testing.T) {
	if os.Getenv(peerEnv) == "" {
		t.Skip("set " + peerEnv + " to compare with wrk, which has to be installed")
	}
	// A collection of the server's garbage would wait for our loops.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var n atomic.Int64
	s := serve(t, func(c *session) {
		for c.request() {
			delay := 2 * time.Millisecond
			switch k := n.Add(1); {
			case k%50 == 0:
				delay = 40 * time.Millisecond
			case k%5 == 0:
				delay = 10 * time.Millisecond
			}
			time.Sleep(delay)
			if !c.answer(okAnswer) {
				return
			}
		}
	})
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections, cfg.Duration = 2, 16, 3*time.Second
	for range 3 {
		theirs, err := exec.Command("wrk", "-t2", "-c16", "-d3", "--latency", s.url).Output()
		if err != nil {
			t.Fatal(err)
		}
		var ours bytes.Buffer
		if err := run(t, cfg).WriteWrk(&ours, true); err != nil {
			t.Fatal(err)
		}
		t.Logf("wrk\n%sours\n%s", theirs, ours.String())
	}
}

var numbers = regexp.MustCompile(`\s*[0-9.]+`)

// shape is where the columns of a text end.
func shape(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		ends := numbers.FindAllStringIndex(line, -1)
		var b strings.Builder
		b.WriteString(numbers.ReplaceAllString(strings.TrimRight(line, "\n"), " 9"))
		if !strings.Contains(line, "requests in") && !strings.Contains(line, "@") {
			for _, e := range ends {
				fmt.Fprintf(&b, " %d", e[1])
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}
