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
	"sync"
	"sync/atomic"
	"time"
)

// requestTimeout bounds one request but a watch.
const requestTimeout = 5 * time.Second

// Client asks an etcd. It may be used by several goroutines.
type Client struct {
	cfg Config
	// last is the endpoint that answered last, and is asked first.
	last atomic.Uint32
	http *http.Client
	// token proves the login; it is made when it is first needed.
	mu    sync.Mutex
	token string
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
	dialer := &net.Dialer{Timeout: requestTimeout}
	return &Client{cfg: cfg, http: &http.Client{
		Transport: &http.Transport{
			DialContext:           dialer.DialContext,
			TLSClientConfig:       t,
			ResponseHeaderTimeout: requestTimeout,
			IdleConnTimeout:       time.Minute,
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.Post(ctx, path, request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && answer != nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return fmt.Errorf("read etcd's answer to %s: %w", path, err)
	}
	return nil
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
		resp, err := c.postTo(ctx, c.cfg.Endpoints[at], path, body)
		if err == nil {
			c.last.Store(at)
			return resp, nil
		}
		if e, ok := errors.AsType[*Error](err); ok && e.final {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// postTo asks one endpoint, and logs in anew where etcd has forgotten the token.
func (c *Client) postTo(ctx context.Context, endpoint, path string, body []byte) (*http.Response, error) {
	for first := true; ; first = false {
		token, err := c.login(ctx, endpoint)
		if err != nil {
			return nil, err
		}
		resp, err := c.send(ctx, http.MethodPost, endpoint+path, token, body)
		if refused, ok := errors.AsType[*statusError](err); !ok || !refused.badToken() || !first {
			return resp, c.explain(err)
		}
		c.mu.Lock()
		c.token = ""
		c.mu.Unlock()
	}
}

// login returns the token to ask with, empty where no user is needed.
func (c *Client) login(ctx context.Context, endpoint string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.User == "" || c.token != "" {
		return c.token, nil
	}
	body, err := json.Marshal(map[string]string{"name": c.cfg.User, "password": c.cfg.Password})
	if err != nil {
		return "", fmt.Errorf("log in to etcd: %w", err)
	}
	resp, err := c.send(ctx, http.MethodPost, endpoint+"/v3/auth/authenticate", "", body)
	if err != nil {
		return "", c.explain(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("log in to the etcd at %s: its answer holds no token", endpoint)
	}
	c.token = answer.Token
	return c.token, nil
}

// send makes one request. An answer other than 200 is a *statusError.
func (c *Client) send(ctx context.Context, method, url, token string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
		resp.Body.Close()
		return nil, &statusError{url: url, status: resp.Status, code: resp.StatusCode, text: summary(text)}
	}
	return resp, nil
}
