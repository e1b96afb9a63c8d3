package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// Fetch sends body to url and returns the body of a 200 answer, its first megabyte
// at most.
func Fetch(ctx context.Context, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := NewHTTPClient().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	const most = 1 << 20
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return string(answer), err
}
