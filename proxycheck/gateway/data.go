package gateway

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// upstreamTimeout is how long a node may take to accept a connection,
	// and to begin its answer: APISIX's default for both.
	upstreamTimeout = time.Minute
	// idleConns is how many idle connections to upstreams are kept, and
	// idleTime how long: APISIX's keepalive pool.
	idleConns = 320
	idleTime  = time.Minute
)

var (
	chunked   = []string{"chunked"}
	keepAlive = []string{"keep-alive"}
	closing   = []string{"close"}
)

// dataPlane serves the routes.
type dataPlane struct {
	routes    *routes
	server    []string // the header Server
	transport *http.Transport
}

func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: upstreamTimeout}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		MaxIdleConns:          idleConns,
		MaxIdleConnsPerHost:   idleConns,
		IdleConnTimeout:       idleTime,
		ResponseHeaderTimeout: upstreamTimeout,
		DisableCompression:    true,
	}
}

// begin adds the headers that every answer has, and announces the end of a
// connection that has served its share of requests.
func begin(w http.ResponseWriter, r *http.Request, server []string) *clientConn {
	conn := connOf(r)
	h := w.Header()
	h["Server"] = server
	conn.requests++
	if conn.requests >= maxRequests {
		h["Connection"] = closing
	} else {
		h["Connection"] = keepAlive
	}
	return conn
}

func (d *dataPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := begin(w, r, d.server)
	start := time.Now()
	rt := d.routes.table.Load().find(r.URL.Path)
	if rt == nil {
		writeError(w, http.StatusNotFound, "404 Route Not Found")
		return
	}
	code, node, upstream := d.serve(w, r, rt, conn, start)
	if rt.prometheus != nil {
		count := rt.unasked
		if node != nil {
			count = node.series
		}
		conn.bill = count()
		conn.bill.observe(code, time.Since(start), upstream)
	}
}

// serve answers a request of a route: it says with what status, from which
// node, and how long that took.
func (d *dataPlane) serve(w http.ResponseWriter, r *http.Request, rt *route, conn *clientConn, now time.Time) (int, *balanced, time.Duration) {
	if l := rt.limiter; l != nil {
		left, end, ok := l.take(conn.ip, now)
		l.header(w.Header(), left, end, now)
		if !ok {
			if l.Message != "" {
				writeError(w, l.Rejected, l.Message)
			} else {
				WritePage(w, l.Rejected, Name)
			}
			return l.Rejected, nil, 0
		}
	}
	asked := time.Now()
	resp, node, err := d.ask(r, rt, conn)
	if err != nil {
		took := time.Since(asked)
		return d.failed(w, node, err), node, took
	}
	defer resp.Body.Close()
	copyHeader(w.Header(), resp)
	w.WriteHeader(resp.StatusCode)
	if err := stream(w, resp.Body); err != nil {
		// The status has been sent, so only a cut connection tells the
		// client that the rest is missing: net/http's own way to do so.
		panic(http.ErrAbortHandler)
	}
	return resp.StatusCode, node, time.Since(asked)
}

// ask asks one node, and another one if a request without a body was not
// answered.
func (d *dataPlane) ask(r *http.Request, rt *route, conn *clientConn) (*http.Response, *balanced, error) {
	out := d.outgoing(r, conn)
	var tried []*balanced
	for {
		node := rt.balancer.next(tried...)
		if node == nil {
			return nil, nil, errNoNode
		}
		out.URL.Host = node.address
		resp, err := d.transport.RoundTrip(out)
		if err == nil {
			return resp, node, nil
		}
		tried = append(tried, node)
		if out.Body != nil || r.Context().Err() != nil || len(tried) == len(rt.balancer.nodes) {
			return nil, node, err
		}
	}
}

var errNoNode = errors.New("no valid upstream node")

// failed answers for an upstream that did not.
func (d *dataPlane) failed(w http.ResponseWriter, node *balanced, err error) int {
	code := http.StatusBadGateway
	var timeout net.Error
	switch {
	case node == nil:
		code = http.StatusServiceUnavailable
	case errors.Is(err, context.Canceled):
		// The client has gone and reads nothing.
		code = clientGone
	case errors.As(err, &timeout) && timeout.Timeout():
		code = http.StatusGatewayTimeout
	}
	if node != nil {
		w.Header()["X-APISIX-Upstream-Status"] = []string{strconv.Itoa(code)}
	}
	WritePage(w, code, Name)
	return code
}

// clientGone is nginx's status for a client that did not wait for the answer.
const clientGone = 499

// outgoing is the request for the upstream, still without its address.
func (d *dataPlane) outgoing(r *http.Request, conn *clientConn) *http.Request {
	out := r.WithContext(r.Context())
	u := url.URL{Scheme: "http", Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	out.URL = &u
	out.RequestURI = ""
	out.Close = false
	if r.ContentLength == 0 {
		out.Body = nil
	}
	h := maps.Clone(r.Header)
	removeHopByHop(h)
	if h["User-Agent"] == nil {
		// Without this the transport would name itself.
		h["User-Agent"] = []string{""}
	}
	ip := []string{conn.ip}
	h["X-Real-Ip"] = ip
	if before := h["X-Forwarded-For"]; before != nil {
		h["X-Forwarded-For"] = []string{strings.Join(before, ", ") + ", " + conn.ip}
	} else {
		h["X-Forwarded-For"] = ip
	}
	h["X-Forwarded-Proto"] = httpScheme
	h["X-Forwarded-Host"] = []string{(&url.URL{Host: r.Host}).Hostname()}
	h["X-Forwarded-Port"] = conn.port
	out.Header = h
	return out
}

var httpScheme = []string{"http"}

// hopByHop are the headers of RFC 9110 section 7.6.1 that concern one
// connection only.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func removeHopByHop(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// copyHeader takes the upstream's headers over. Date and Server are our own.
func copyHeader(h http.Header, resp *http.Response) {
	removeHopByHop(resp.Header)
	for name, values := range resp.Header {
		if name != "Server" && name != "Date" {
			h[name] = values
		}
	}
	if resp.ContentLength < 0 {
		// Otherwise a short answer would be given a Content-Length.
		h["Transfer-Encoding"] = chunked
	}
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// stream copies the body as it comes in. What is at its end is not flushed
// here, so that a short answer goes out in one write.
func stream(w http.ResponseWriter, body io.Reader) error {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err == nil && n > 0 {
			err = http.NewResponseController(w).Flush()
		}
		if err != nil {
			return err
		}
	}
}
