package proxycheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"armrepro/proxycheck/process"
)

// admin speaks the Admin API. Both dialects, 2.x's and 3.x's, take the same
// requests; their answers differ and are told apart by themselves.
type admin struct {
	// base is the URL up to and without /apisix/admin.
	base string
	key  string
	// server is the Server line of the answer by which it was recognized.
	server string
}

// adminError is an answer of the Admin API that says no.
type adminError struct {
	method, url string
	status      int
	message     string
}

func (e *adminError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.method, e.url, e.status, e.message)
}

// recognize asks without the key, so that no stranger learns it, and says
// whether it is an Admin API that answers. If it is one that this run can't use,
// the error says why.
func (a *admin) recognize(ctx context.Context) (found bool, err error) {
	ans, err := a.ask(ctx, "", http.MethodGet, "/routes", nil)
	if err != nil {
		return false, err
	}
	refusal := &adminError{http.MethodGet, a.url("/routes"), ans.Status, adminMessage(ans)}
	a.server = ans.Header.Get("Server")
	switch {
	case wantsKey(ans):
		return true, nil
	case ans.Status == http.StatusForbidden && bytes.Contains(ans.Body, []byte("<h1>403 Forbidden</h1>")):
		a.server = "" // nginx answers it before APISIX has a say
		return true, explainAdmin(refusal, a.key)
	case ans.Status == http.StatusOK:
		_, err := parseRoutes(ans.Body) // with admin_key_required: false
		return err == nil, err
	case ans.Status == http.StatusNotFound:
		configs, err := a.ask(ctx, "", http.MethodGet, "/configs", nil)
		if err == nil && wantsKey(configs) {
			return true, process.Hintf(standaloneHint,
				"the gateway is standalone: its Admin API at %s takes whole configurations at /apisix/admin/configs and no single route", a.base)
		}
	}
	return false, refusal
}

// wantsKey says whether it is the Admin API that asks for its key. A route of
// the data plane may want a key too, but says so in other words.
func wantsKey(ans *process.Answer) bool {
	return ans.Status == http.StatusUnauthorized && strings.HasPrefix(adminMessage(ans), "failed to check token")
}

// holders are the processes that listen on the Admin API's port, if it is on
// this machine and they can be seen.
func (a *admin) holders() []process.Holder {
	u, err := url.Parse(a.base)
	if err != nil || !isLocal(u.Hostname()) {
		return nil
	}
	holders, _ := process.Listeners(os.DirFS("/"), portOf(u))
	return holders
}

func (a *admin) url(path string) string { return a.base + "/apisix/admin" + path }

// routeURL is where the route is, also for a person who removes it.
func (a *admin) routeURL(id string) string { return a.url("/routes/" + url.PathEscape(id)) }

// curlDelete is the command that removes a route. The key is not in it.
func (a *admin) curlDelete(id string) string {
	return fmt.Sprintf(`curl -X DELETE %s -H "X-API-KEY: $%s"`, a.routeURL(id), AdminKeyEnv)
}

// ask makes one request, with the key unless it is empty.
func (a *admin) ask(ctx context.Context, key, method, path string, body []byte) (*process.Answer, error) {
	header := http.Header{}
	if key != "" {
		header.Set("X-API-KEY", key)
	}
	ans, err := process.Ask(ctx, method, a.url(path), header, string(body))
	if err != nil {
		return nil, fmt.Errorf("ask the Admin API: %w", err)
	}
	return ans, nil
}

// do makes one request with the key. An answer that says no is an error.
func (a *admin) do(ctx context.Context, method, path string, body []byte) (*process.Answer, error) {
	ans, err := a.ask(ctx, a.key, method, path, body)
	if err != nil {
		return nil, err
	}
	if ans.Status < 200 || ans.Status > 299 {
		return ans, explainAdmin(&adminError{method, a.url(path), ans.Status, adminMessage(ans)}, a.key)
	}
	return ans, nil
}

// adminMessage is the error_msg or message of an answer, or its beginning.
func adminMessage(ans *process.Answer) string {
	var m struct {
		ErrorMsg    any    `json:"error_msg"`
		Message     string `json:"message"`
		Description string `json:"description"`
	}
	text := string(ans.Body)
	if json.Unmarshal(ans.Body, &m) == nil {
		var parts []string
		for _, s := range []any{m.ErrorMsg, m.Message, m.Description} {
			if part := fmt.Sprint(s); s != nil && part != "" {
				parts = append(parts, part)
			}
		}
		text = cmp.Or(strings.Join(parts, ", "), text)
	}
	return cmp.Or(foreign(text), http.StatusText(ans.Status))
}

// foreign is the beginning of a text that somebody else wrote, fit to print and save.
func foreign(text string) string {
	const enough = 200
	return process.Clean(text[:min(len(text), enough)])
}

// explainAdmin adds what to do about the answers that users run into.
func explainAdmin(err *adminError, key string) error {
	hint := ""
	switch err.status {
	case http.StatusUnauthorized:
		hint = "the admin key is wrong: pass the right one as --admin-key or $" + AdminKeyEnv + "; conf/config.yaml has it under deployment.admin.admin_key (3.x) or apisix.admin_key (2.x)"
		if key == "" {
			hint = strings.Replace(hint, "the admin key is wrong: pass the right one", "no admin key was given: pass it", 1)
		}
	case http.StatusForbidden:
		hint = "this address isn't in the gateway's allow_admin: run armrepro on the gateway's machine, or add the address there and reload the gateway"
	case http.StatusServiceUnavailable:
		hint = "the gateway can't reach its etcd: see that etcd runs and answers"
	}
	if hint == "" {
		return err
	}
	return process.WithHint(err, hint)
}

// adminStatus is the status that the Admin API answered err with, or 0.
func adminStatus(err error) int {
	if e, ok := errors.AsType[*adminError](err); ok {
		return e.status
	}
	return 0
}

// put creates or replaces a route.
func (a *admin) put(ctx context.Context, id string, body []byte) error {
	_, err := a.do(ctx, http.MethodPut, "/routes/"+url.PathEscape(id), body)
	return err
}

// delete removes a route; one that isn't there is no error.
func (a *admin) delete(ctx context.Context, id string) error {
	_, err := a.do(ctx, http.MethodDelete, "/routes/"+url.PathEscape(id), nil)
	if adminStatus(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// routes lists the routes that exist.
func (a *admin) routes(ctx context.Context) ([]existingRoute, error) {
	ans, err := a.do(ctx, http.MethodGet, "/routes", nil)
	if err != nil {
		return nil, err
	}
	routes, err := parseRoutes(ans.Body)
	if err != nil {
		return nil, fmt.Errorf("read the routes of %s: %w", a.base, err)
	}
	return routes, nil
}

// answers says whether the Admin API answers to our key. More tries don't make
// a key right.
func (a *admin) answers(ctx context.Context) error {
	_, err := a.routes(ctx)
	if s := adminStatus(err); s == http.StatusUnauthorized || s == http.StatusForbidden {
		return process.Permanent(err)
	}
	return err
}

// plugins lists the plugins that are loaded. 2.15 answers 500 to the question.
func (a *admin) plugins(ctx context.Context) ([]string, error) {
	ans, err := a.do(ctx, http.MethodGet, "/plugins/list", nil)
	if err != nil {
		return nil, err
	}
	var names []string
	if err := json.Unmarshal(ans.Body, &names); err != nil {
		return nil, fmt.Errorf("read the plugins of %s: %w", a.base, err)
	}
	const most = 1000
	if len(names) > most {
		return nil, fmt.Errorf("read the plugins of %s: it lists %d", a.base, len(names))
	}
	for i := range names {
		names[i] = foreign(names[i])
	}
	return names, nil
}
