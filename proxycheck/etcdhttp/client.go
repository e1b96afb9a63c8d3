package etcdhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"armrepro/proxycheck/process"
)

// Client asks an etcd. It may be used by several goroutines.
type Client struct {
	cfg Config
	// last is the endpoint that answered last, and is asked first.
	last atomic.Uint32
	http *http.Client
}

// New makes a client. It reads the certificates and asks nothing yet.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	t, err := cfg.tlsConfig()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: process.RequestTimeout}
	return &Client{cfg: cfg, http: &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        t,
			ResponseHeaderTimeout:  process.RequestTimeout,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Range is a range of keys, or one key where RangeEnd is empty.
type Range struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
}

// Under is the range of every key that begins with prefix, which ends in a byte
// below 255.
func Under(prefix string) Range {
	end := []byte(prefix)
	end[len(end)-1]++
	return Range{[]byte(prefix), end}
}

// Call makes one request and reads the answer into answer, if that is not nil.
func (c *Client) Call(ctx context.Context, path string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, process.RequestTimeout)
	defer cancel()
	resp, err := c.Post(ctx, path, request)
	if err != nil {
		return err
	}
	if err := read(resp, answer); err != nil {
		return fmt.Errorf("read etcd's answer to %s: %w", path, err)
	}
	return nil
}

// read reads an answer into answer, if that is not nil, and closes its body.
func read(resp *http.Response, answer any) error {
	defer resp.Body.Close()
	body, err := process.ReadAll(resp.Body, process.MaxAnswerBytes)
	if err == nil && answer != nil {
		err = json.Unmarshal(body, answer)
	}
	return err
}

// Post asks each endpoint in turn until one answers 200, or says something that
// the others would say too. The caller closes the body.
func (c *Client) Post(ctx context.Context, path string, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	var errs []error
	first := c.last.Load()
	count := uint32(len(c.cfg.Endpoints))
	for i := range count {
		at := (first + i) % count
		token, err := c.login(ctx, c.cfg.Endpoints[at])
		if err == nil {
			var resp *http.Response
			if resp, err = c.send(ctx, c.cfg.Endpoints[at], path, token, body); err == nil {
				c.last.Store(at)
				return resp, nil
			}
		}
		if _, final := errors.AsType[refusal](err); final {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// login returns the token to ask an endpoint with, empty where no user is needed.
// Tokens end after a while and with every change of a user, so none is kept: the
// requests are few.
func (c *Client) login(ctx context.Context, endpoint string) (token string, err error) {
	if c.cfg.User == "" {
		return "", nil
	}
	body, err := json.Marshal(map[string]string{"name": c.cfg.User, "password": c.cfg.Password})
	if err != nil {
		return "", fmt.Errorf("log in to etcd: %w", err)
	}
	resp, err := c.send(ctx, endpoint, "/v3/auth/authenticate", "", body)
	if err != nil {
		return "", err
	}
	var answer struct{ Token string }
	if err := read(resp, &answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("log in to the etcd at %s: its answer holds no token", endpoint)
	}
	return answer.Token, nil
}

// send makes one request: a POST, or a GET without a body. An answer other than
// 200 is an error.
func (c *Client) send(ctx context.Context, endpoint, path, token string, body []byte) (*http.Response, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, process.Hintf(dialHint(err), "ask etcd: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	return nil, explain(&statusError{endpoint: endpoint, path: path, status: resp.Status, text: summary(text)})
}
