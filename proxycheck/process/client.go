package process

import (
	"net"
	"net/http"
	"time"
)

// RequestTimeout bounds one request of this program's own. The slowest answer
// seen, a PUT to a gateway while etcd elects, took under a second.
const RequestTimeout = 5 * time.Second

// NewHTTPClient is the client for every request of this program's own, to what it
// started and to a gateway: no proxy from the environment, no redirects, and a
// connection for each request, so that the workers of a gateway take turns and
// none holds a connection of ours while it is measured.
func NewHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: RequestTimeout}
	return &http.Client{
		Timeout:   RequestTimeout,
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}
