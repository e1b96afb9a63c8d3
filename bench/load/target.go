package load

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"
)

// target is where to connect and what to send.
type target struct {
	// host and port are the URL's, and address what they resolve to. path is a
	// unix socket's and, if set, used instead.
	host, port string
	address    netip.AddrPort
	path       string
	// tls is nil without https.
	tls     *tls.Config
	request []byte
}

// newTarget reads cfg.URL and builds the request: the request line, Host and
// nothing else that was not asked for, as wrk does. Nothing is resolved yet.
func newTarget(cfg Config) (*target, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("invalid URL %q: %w", cfg.URL, errors.Unwrap(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("invalid URL %q: want http://host[:port]/path or https://…", cfg.URL)
	}
	if u.User != nil {
		return nil, errors.New("invalid URL: the part before the @ is not sent; use a header (-H 'Authorization: …')")
	}
	if strings.ContainsFunc(u.RequestURI(), func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return nil, fmt.Errorf("invalid URL %q: escape spaces and control characters (%%20 for a space)", cfg.URL)
	}
	t := &target{host: u.Hostname(), port: cmp.Or(u.Port(), "80"), path: cfg.UnixSocket}
	if u.Scheme == "https" {
		t.port = cmp.Or(u.Port(), "443")
		// As with wrk, no certificate is refused: nothing secret is sent,
		// and a server under test seldom has one that others trust.
		t.tls = &tls.Config{ServerName: t.host, InsecureSkipVerify: true}
	}
	t.request, err = buildRequest(u, cfg)
	return t, err
}

// resolve finds the address and makes sure that something accepts connections
// there.
func (t *target) resolve(ctx context.Context) error {
	address, network := t.path, "unix"
	if t.path == "" {
		address, network = net.JoinHostPort(t.host, t.port), "tcp"
	}
	conn, err := reach(ctx, network, address)
	if err != nil {
		return fmt.Errorf("unable to connect to %s: %w", address, err)
	}
	defer conn.Close()
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		t.address = tcp.AddrPort()
	}
	return nil
}

// reach connects. A server that accepts and resets at once is there all the same,
// though connecting may fail by it.
func reach(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	const tries = 20
	var err error
	for range tries {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, address); !errors.Is(err, unix.ECONNRESET) {
			return conn, err
		}
	}
	return nil, err
}

// connectTimeout bounds the first attempt to reach the host, which may be
// silent.
const connectTimeout = 10 * time.Second

// sockaddr is where to connect as the system call takes it, which writes to it:
// each thread needs its own.
func (t *target) sockaddr() (family int, address unix.Sockaddr) {
	if t.path != "" {
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: t.path}
	}
	port, ip := int(t.address.Port()), t.address.Addr()
	if ip := ip.Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: ip.As16(), ZoneId: zoneID(ip.Zone())}
}

// zoneID is the number of the interface that a link-local address belongs to.
func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}

// buildRequest writes the bytes that every request consists of.
func buildRequest(u *url.URL, cfg Config) ([]byte, error) {
	method := cmp.Or(cfg.Method, http.MethodGet)
	if !httpguts.ValidHeaderFieldName(method) {
		return nil, fmt.Errorf("invalid method %q", method)
	}
	host, framed := u.Host, false
	var rest bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(cfg.Header)) {
		for _, value := range cfg.Header[name] {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				return nil, fmt.Errorf("invalid header %q", name+": "+value)
			}
			if strings.EqualFold(name, "Host") {
				host = value
				continue
			}
			own, err := framing(name, value, len(cfg.Body))
			if err != nil {
				return nil, err
			}
			framed = framed || own
			fmt.Fprintf(&rest, "%s: %s\r\n", name, value)
		}
	}
	// RFC 9110, section 8.6, wants a length of 0 where a body has a meaning.
	if takesBody := slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, method); !framed && (takesBody || len(cfg.Body) > 0) {
		fmt.Fprintf(&rest, "Content-Length: %d\r\n", len(cfg.Body))
	}
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, u.RequestURI(), host, rest.Bytes())
	return append(head, cfg.Body...), nil
}

// framing says whether a header that was asked for frames the body itself. It is
// an error if that contradicts the body.
func framing(name, value string, body int) (bool, error) {
	switch {
	case strings.EqualFold(name, "Transfer-Encoding"):
		return true, nil // The body is to be sent as it is.
	case !strings.EqualFold(name, "Content-Length"):
		return false, nil
	case value != strconv.Itoa(body):
		return false, fmt.Errorf("invalid header \"%s: %s\": the body has %d bytes", name, value, body)
	}
	return true, nil
}
