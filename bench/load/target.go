package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"
)

// target is where to connect and what to send.
type target struct {
	address netip.AddrPort
	request []byte
}

// request is what a Config asks for, before anything is resolved.
type request struct {
	host, port string
	bytes      []byte
}

// newRequest reads cfg.URL and builds the request: the request line, Host and
// nothing else that was not asked for, as wrk does.
func newRequest(cfg Config) (request, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return request{}, fmt.Errorf("invalid URL %q: %w", cfg.URL, errors.Unwrap(err))
	}
	if u.Scheme != "http" || u.Hostname() == "" {
		return request{}, fmt.Errorf("invalid URL %q: want http://host[:port]/path", cfg.URL)
	}
	r := request{host: u.Hostname(), port: u.Port()}
	if r.port == "" {
		r.port = "80"
	}
	r.bytes, err = buildRequest(u, cfg.Header)
	return r, err
}

// newTarget resolves the host of cfg.URL.
func newTarget(ctx context.Context, cfg Config) (*target, error) {
	r, err := newRequest(cfg)
	if err != nil {
		return nil, err
	}
	address, err := resolve(ctx, r.host, r.port)
	if err != nil {
		return nil, err
	}
	return &target{address: address, request: r.bytes}, nil
}

// connectTimeout bounds the first attempt to reach the host, which may be
// silent.
const connectTimeout = 10 * time.Second

// resolve finds an address of host that accepts connections.
func resolve(ctx context.Context, host, port string) (netip.AddrPort, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("unable to connect to %s: %w", net.JoinHostPort(host, port), err)
	}
	defer conn.Close()
	address, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("unable to connect to %s: no TCP address", host)
	}
	return address.AddrPort(), nil
}

// sockaddr is address as connecting takes it, which writes to it: each thread
// needs its own.
func sockaddr(address netip.AddrPort) (int, unix.Sockaddr) {
	if ip := address.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(address.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
}

// buildRequest writes the bytes that every request consists of.
func buildRequest(u *url.URL, header http.Header) ([]byte, error) {
	host := u.Host
	var rest bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				return nil, fmt.Errorf("invalid header %q", name+": "+value)
			}
			if strings.EqualFold(name, "Host") {
				host = value
				continue
			}
			fmt.Fprintf(&rest, "%s: %s\r\n", name, value)
		}
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", u.RequestURI(), host, rest.Bytes()), nil
}
