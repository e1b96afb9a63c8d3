package gateway

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// maxRequests is how many requests a client connection serves before it is
// closed, as nginx's keepalive_requests has it.
const maxRequests = 1000

// clientConn is a client's connection that counts its bytes and requests.
type clientConn struct {
	net.Conn
	ip       string
	port     []string      // the header X-Forwarded-Port
	in, out  atomic.Uint64 // since the last answer
	requests int
	// bill takes the bytes since the last answer, if set.
	bill *series
}

func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(uint64(n))
	return n, err
}

func (c *clientConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.Add(uint64(n))
	return n, err
}

// settle accounts for the bytes of the answer that has just been sent.
func (c *clientConn) settle() {
	in, out := c.in.Swap(0), c.out.Swap(0)
	if c.bill != nil {
		c.bill.ingress.Add(float64(in))
		c.bill.egress.Add(float64(out))
		c.bill = nil
	}
}

// clientListener accepts clientConns.
type clientListener struct{ net.Listener }

func (l clientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ip, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	return &clientConn{Conn: conn, ip: ip, port: []string{port}}, nil
}

type connKey struct{}

// withConn makes the connection known to the handlers.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// connOf is the connection that r came on.
func connOf(r *http.Request) *clientConn {
	conn, _ := r.Context().Value(connKey{}).(*clientConn)
	return conn
}

// settleWhenIdle accounts for an answer once all of it has been sent, or its
// connection has ended. net/http calls it in the goroutine that serves the
// connection.
func settleWhenIdle(conn net.Conn, to http.ConnState) {
	if to == http.StateIdle || to == http.StateClosed {
		if c, ok := conn.(*clientConn); ok {
			c.settle()
		}
	}
}
