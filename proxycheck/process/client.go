package process

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// RequestTimeout bounds one request of this program's own, with its answer.
	// The slowest one seen, a PUT to a gateway while etcd elects, took under a
	// second.
	RequestTimeout = 5 * time.Second
	// MaxAnswerBytes bounds an answer. A production gateway's routes or metrics
	// can be some megabytes.
	MaxAnswerBytes = 64 << 20
	maxHeaderBytes = 64 << 10
)

// client makes every request of this program's own, to what it started and to a
// gateway: no proxy from the environment, no redirects, and a connection for each
// request, so that the workers of a gateway take turns and none holds a connection
// of ours while it is measured.
var client = &http.Client{
	Timeout: RequestTimeout,
	Transport: &http.Transport{
		DialContext:       (&net.Dialer{Timeout: RequestTimeout}).DialContext,
		DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Answer is a whole HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ask makes one request and reads the whole answer, of at most 64 MiB. The header
// may be nil.
func Ask(ctx context.Context, method, url string, header http.Header, body string) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, Permanent(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := ReadAll(resp.Body, MaxAnswerBytes)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	return &Answer{resp.StatusCode, resp.Header, answer}, nil
}

// Fetch sends body to url and returns the body of a 200 answer.
func Fetch(ctx context.Context, method, url, body string) (string, error) {
	answer, err := Ask(ctx, method, url, nil, body)
	if err != nil {
		return "", err
	}
	if answer.Status != http.StatusOK {
		return "", fmt.Errorf("%s answers status %d", url, answer.Status)
	}
	return string(answer.Body), nil
}
