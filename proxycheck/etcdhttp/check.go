package etcdhttp

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// enough is how many bytes of an unexpected answer are shown.
const enough = 200

// Check makes sure that APISIX can use this etcd: that more than half of the
// endpoints answer as etcd 3.4 or newer, and that keys below prefix can be read.
// It returns etcd's version.
func (c *Client) Check(ctx context.Context, prefix string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var errs []error
	for _, endpoint := range c.cfg.Endpoints {
		v, err := c.version(ctx, endpoint)
		if err != nil {
			errs = append(errs, err)
		} else if version == "" {
			version = v
		}
	}
	if all := len(c.cfg.Endpoints); 2*len(errs) >= all {
		if all > 1 {
			return "", fmt.Errorf("use etcd: %d of its %d endpoints can't be used and APISIX wants more than half of them: %w", len(errs), all, errs[0])
		}
		return "", errs[0]
	}
	if err := c.Call(ctx, "/v3/kv/range", Range{Key: []byte(prefix + "/")}, &struct{}{}); err != nil {
		return "", err
	}
	return version, nil
}

// version asks one endpoint for its version, which needs no login.
func (c *Client) version(ctx context.Context, endpoint string) (string, error) {
	resp, err := c.send(ctx, http.MethodGet, endpoint+"/version", "", nil)
	if err != nil {
		return "", c.explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return "", fmt.Errorf("read the version of the etcd at %s: %w", endpoint, err)
	}
	var answer struct {
		Server  string `json:"etcdserver"`
		Cluster string `json:"etcdcluster"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Server == "" {
		return "", notEtcd(endpoint, "/version answers "+summary(body))
	}
	if !atLeast34(answer.Cluster) {
		return "", hintf("use etcd 3.4 or newer, or leave --etcd out to use the embedded one",
			"use the etcd at %s: its version is %s (cluster %s) and APISIX needs 3.4.0", endpoint, answer.Server, answer.Cluster)
	}
	return answer.Server, nil
}

// atLeast34 is what APISIX asks of the cluster's version.
func atLeast34(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err1 := strconv.Atoi(major)
	n, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (m > 3 || m == 3 && n >= 4)
}

func notEtcd(endpoint, why string) error {
	return hintf("pass the client URLs of a running etcd as --etcd, or leave it out to use the embedded one",
		"use the etcd at %s: it is no etcd: %s", endpoint, why)
}

// summary is the beginning of an unexpected answer, as one line.
func summary(body []byte) string {
	var answer struct {
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	text := strings.Join(strings.Fields(string(body[:min(len(body), enough)])), " ")
	switch {
	case text == "":
		return "nothing"
	case json.Unmarshal(body, &answer) == nil && answer.Message+answer.Error != "":
		text = answer.Message
		if text == "" {
			text = answer.Error
		}
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return "an HTML page"
	}
	return strconv.Quote(text)
}

// statusError is an answer other than 200.
type statusError struct {
	url, status, text string
	code              int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("ask etcd: %s answered %s: %s", e.url, e.status, e.text)
}

func (e *statusError) badToken() bool {
	return strings.Contains(e.text, "invalid auth token") || strings.Contains(e.text, "revision of auth store is old")
}

// refusals are the answers that users run into, by what etcd's message holds.
var refusals = []struct{ said, what, hint string }{
	{"user name is empty", "it wants a user and a password", "pass --etcd-user USER and set " + PasswordEnv},
	{"invalid user ID or password", "wrong user or password", "correct --etcd-user and " + PasswordEnv + ", or the user info of --etcd"},
	{"authentication is not enabled", "a user was given and it has none", "leave --etcd-user and the user info of --etcd out"},
	{"permission denied", "the user may not use these keys", "grant the user's role readwrite on the prefix /armrepro-, or on the one that --etcd-prefix names"},
	{"CommonName of client", "it takes no client certificate with a common name through its HTTP gateway", "use a client certificate without a common name, or a user and a password"},
	{"HTTP request to an HTTPS server", "it speaks https", "write the endpoint as https://"},
}

// explain adds what to do about the errors that users run into.
func (c *Client) explain(err error) error {
	refused, ok := errors.AsType[*statusError](err)
	if !ok {
		return explainDial(err)
	}
	for _, r := range refusals {
		if strings.Contains(refused.text, r.said) {
			return hintf(r.hint, "use the etcd at %s: %s (%s)", hostOf(refused.url), r.what, refused.text)
		}
	}
	if refused.code == http.StatusNotFound && strings.Contains(refused.url, "/v3/") {
		return hintf("start etcd with --enable-grpc-gateway", "use the etcd at %s: its HTTP gateway, which APISIX uses, is off (status 404)", hostOf(refused.url))
	}
	if strings.HasSuffix(refused.url, "/version") {
		return notEtcd(hostOf(refused.url), "/version answers "+refused.status)
	}
	return err
}

// hostOf is the endpoint of a request's URL.
func hostOf(url string) string {
	for _, path := range []string{"/v3/", "/version"} {
		if i := strings.LastIndex(url, path); i >= 0 {
			return url[:i]
		}
	}
	return url
}

// explainDial adds what to do about an etcd that doesn't answer.
func explainDial(err error) error {
	if err == nil {
		return nil
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherName := errors.AsType[x509.HostnameError](err)
	hint := "see that etcd runs and answers, or start one with armrepro etcd; --etcd takes its client URLs"
	switch text := err.Error(); {
	case unknown:
		hint = "pass the authority that signed etcd's certificate as --etcd-cacert"
	case otherName:
		hint = "name etcd in --etcd as its certificate does"
	case strings.Contains(text, "HTTP response to HTTPS client"):
		hint = "write the endpoint as http://"
	case errors.Is(err, io.EOF):
		hint = "see whether it speaks http or https"
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: bad certificate"):
		hint = "pass a client certificate that etcd accepts as --etcd-cert and --etcd-key"
	}
	return &Error{err: err, hint: hint}
}
