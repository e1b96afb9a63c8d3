package etcdhttp

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// refusal is an answer that every endpoint of the cluster would give.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(hint, format string, args ...any) error {
	return refusal{process.Hintf(hint, format, args...)}
}

// enough is how many bytes of an unexpected answer are shown.
const enough = 200

// Check makes sure that APISIX can use this etcd: that more than half of the
// endpoints answer as etcd 3.4 or newer, and that keys below prefix can be read.
// It returns etcd's version.
func (c *Client) Check(ctx context.Context, prefix string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, process.RequestTimeout)
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

// release is what the version of an etcd looks like, such as 3.6.0-rc.1.
var release = regexp.MustCompile(`^\d+\.\d+\.\d+[-+.\w]{0,40}$`)

// version asks one endpoint for its version, which needs no login.
func (c *Client) version(ctx context.Context, endpoint string) (string, error) {
	resp, err := c.send(ctx, endpoint, "/version", "", nil)
	if err != nil {
		return "", err
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
	if err := json.Unmarshal(body, &answer); err != nil || !release.MatchString(answer.Server) {
		return "", notEtcd(endpoint, "/version answers "+summary(body))
	}
	var major, minor int
	if _, err := fmt.Sscanf(answer.Cluster, "%d.%d", &major, &minor); err != nil || major < 3 || major == 3 && minor < 4 {
		return "", refuse("use etcd 3.4 or newer, or leave --etcd out to use the embedded one",
			"use the etcd at %s: its version is %s (cluster %s) and APISIX needs 3.4.0", endpoint, answer.Server, process.Clean(answer.Cluster[:min(len(answer.Cluster), 20)]))
	}
	return answer.Server, nil
}

func notEtcd(endpoint, why string) error {
	return refuse("pass the client URLs of a running etcd as --etcd, or leave it out to use the embedded one",
		"use the etcd at %s: it is no etcd: %s", endpoint, why)
}

// summary is the beginning of an unexpected answer, as one line.
func summary(body []byte) string {
	var answer struct{ Message, Error string }
	text := strings.Join(strings.Fields(string(body[:min(len(body), enough)])), " ")
	switch {
	case text == "":
		return "nothing"
	case strings.HasPrefix(text, "<"):
		return "an HTML page"
	case json.Unmarshal(body, &answer) == nil:
		text = cmp.Or(answer.Message, answer.Error, text)
	}
	return strconv.Quote(text)
}

// statusError is an answer other than 200.
type statusError struct{ endpoint, path, status, text string }

func (e *statusError) Error() string {
	return fmt.Sprintf("ask etcd: %s%s answered %s: %s", e.endpoint, e.path, e.status, e.text)
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

// explain adds what to do about the answers that users run into.
func explain(e *statusError) error {
	for _, r := range refusals {
		if strings.Contains(e.text, r.said) {
			return refuse(r.hint, "use the etcd at %s: %s (%s)", e.endpoint, r.what, e.text)
		}
	}
	switch {
	case e.path == "/version":
		return notEtcd(e.endpoint, "/version answers "+e.status)
	case strings.HasPrefix(e.status, "404 "):
		return refuse("start etcd with --enable-grpc-gateway", "use the etcd at %s: its HTTP gateway, which APISIX uses, is off (status 404)", e.endpoint)
	}
	return e
}

// dialHint says what to do about an etcd that doesn't answer.
func dialHint(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherName := errors.AsType[x509.HostnameError](err)
	text := err.Error()
	switch {
	case unknown:
		return "pass the authority that signed etcd's certificate as --etcd-cacert"
	case otherName:
		return "name etcd in --etcd as its certificate does"
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: bad certificate"):
		return "pass a client certificate that etcd accepts as --etcd-cert and --etcd-key"
	case strings.Contains(text, "HTTP response to HTTPS client"), errors.Is(err, io.EOF):
		return "see whether it speaks http or https"
	}
	return "see that etcd runs and answers, or start one with armrepro etcd; --etcd takes its client URLs"
}
