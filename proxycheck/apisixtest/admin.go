package apisixtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"armrepro/proxycheck/gateway"
)

// adminPath is what every path of the Admin API begins with.
const adminPath = "/apisix/admin/"

type object = map[string]any

// adminHandler is the Admin API of the version.
func (w *worker) adminHandler() http.Handler {
	switch {
	case w.faults.AdminStatus != 0:
		return w.named(w.forced)
	case w.server == nil:
		return w.named(w.standaloneAdmin)
	}
	serve := w.renamed(w.server.AdminURL, w.likeAPISIX)
	if isV3(w.conf.version) {
		return serve
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.Header.Get("X-API-KEY") == w.conf.key {
			if why := completeV2(r); why != "" {
				w.named(func(rw http.ResponseWriter, _ *http.Request) {
					writeAdmin(rw, http.StatusBadRequest, object{"error_msg": why})
				}).ServeHTTP(rw, r)
				return
			}
		}
		serve.ServeHTTP(rw, r)
	})
}

// forced answers every request with the status that the fault names. nginx
// refuses an address before the key is looked at, and etcd is asked after it.
func (w *worker) forced(rw http.ResponseWriter, r *http.Request) {
	switch status := w.faults.AdminStatus; {
	case status == http.StatusForbidden:
		rw.Header().Set("Server", "openresty")
		gateway.WritePage(rw, status, "openresty")
	case status == http.StatusUnauthorized || r.Header.Get("X-API-KEY") == "":
		writeAdmin(rw, http.StatusUnauthorized, object{"error_msg": "failed to check token"})
	default:
		writeAdmin(rw, status, object{"error_msg": "has no healthy etcd endpoint available"})
	}
}

// standaloneAdmin is the Admin API of a gateway without etcd: it takes its whole
// configuration at once and has no routes of their own. What it has not it
// refuses before it looks at the key.
func (w *worker) standaloneAdmin(rw http.ResponseWriter, r *http.Request) {
	switch given := r.Header.Get("X-API-KEY"); {
	case r.URL.Path != adminPath+"configs":
		gateway.WritePage(rw, http.StatusNotFound, "openresty")
	case given == "":
		writeAdmin(rw, http.StatusUnauthorized, object{"error_msg": "failed to check token", "description": "missing apikey"})
	case given != w.conf.key:
		writeAdmin(rw, http.StatusUnauthorized, object{"error_msg": "failed to check token", "description": "wrong apikey"})
	default:
		writeAdmin(rw, http.StatusOK, object{"routes_conf_version": 0, "upstreams_conf_version": 0})
	}
}

// likeAPISIX turns an answer of the built-in gateway's Admin API into APISIX's.
func (w *worker) likeAPISIX(resp *http.Response) error {
	list := resp.StatusCode == http.StatusOK && resp.Request.URL.Path == adminPath+"plugins/list"
	if list && !isV3(w.conf.version) {
		resp.StatusCode = http.StatusInternalServerError
		resp.Header.Set("Content-Type", "text/html; charset=utf-8")
		resp.Header.Set("Connection", "close")
		resp.Body = io.NopCloser(strings.NewReader(internalError))
		return nil
	}
	if !list && isV3(w.conf.version) || resp.Header.Get("Content-Type") != "application/json" {
		return nil
	}
	resp.Header.Del("X-API-VERSION")
	dec := json.NewDecoder(resp.Body)
	dec.UseNumber()
	var answer any = w.conf.plugins
	if !list {
		var o object
		if err := dec.Decode(&o); err != nil {
			return err
		}
		answer = w.answerV2(resp, o)
	}
	resp.Body.Close()
	body := gateway.Encode(answer)
	if !isV3(w.conf.version) {
		// A slash in JSON is always inside a string.
		body = bytes.ReplaceAll(body, []byte("/"), []byte(`\/`))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// answerV2 turns the answer of 3.x into that of 2.x.
func (w *worker) answerV2(resp *http.Response, o object) object {
	delete(o, "description")
	key, isRoute := o["key"]
	node := object{"key": key, "value": o["value"]}
	list, isList := o["list"]
	method := resp.Request.Method
	switch {
	case isList:
		return object{"action": "get", "count": o["total"], "node": object{"key": w.conf.prefix + "/routes", "dir": true, "nodes": list}}
	case strings.HasPrefix(fmt.Sprint(o["error_msg"]), "Unsupported resource type"):
		return object{"error_msg": "not found"}
	case !isRoute:
		return o
	case method == http.MethodPut:
		return object{"action": "set", "node": node}
	case method == http.MethodDelete:
		return object{"action": "delete", "deleted": "1", "key": key, "node": object{}}
	}
	return object{"action": "get", "count": 1, "node": node}
}

// completeV2 writes the defaults into the route that r puts, as 2.x stores them,
// and says why 2.x refuses it where 3.x has other words for that.
func completeV2(r *http.Request) (refused string) {
	body, err := io.ReadAll(r.Body)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var route object
	if err == nil && dec.Decode(&route) == nil && route != nil {
		setDefaults(route, object{"status": 1, "priority": 0})
		if upstream, ok := route["upstream"].(object); ok {
			setDefaults(upstream, object{"type": "roundrobin", "scheme": "http", "pass_host": "pass", "hash_on": "vars"})
		}
		plugins, _ := route["plugins"].(object)
		if limit, ok := plugins["limit-count"].(object); ok {
			for _, name := range []string{"count", "time_window"} {
				if limit[name] == nil {
					return fmt.Sprintf("failed to check the configuration of plugin limit-count err: property %q is required", name)
				}
			}
			setDefaults(limit, object{
				"rejected_code": 503, "key": "remote_addr", "key_type": "var", "policy": "local",
				"allow_degradation": false, "show_limit_quota_header": true,
			})
		}
		if prometheus, ok := plugins["prometheus"].(object); ok {
			setDefaults(prometheus, object{"prefer_name": false})
		}
		body = gateway.Encode(route)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return ""
}

func setDefaults(o, defaults object) {
	for name, value := range defaults {
		if o[name] == nil {
			o[name] = value
		}
	}
}

// quotaV2 takes away what 2.x does not show of a quota: when it ends, and all of
// it on an answer that rejects.
func quotaV2(resp *http.Response) {
	resp.Header.Del("X-RateLimit-Reset")
	if resp.StatusCode == http.StatusServiceUnavailable {
		resp.Header.Del("X-RateLimit-Limit")
		resp.Header.Del("X-RateLimit-Remaining")
	}
}

// writeAdmin answers as the Admin API does.
func writeAdmin(w http.ResponseWriter, status int, v any) {
	maps.Copy(w.Header(), gateway.AdminHeaders)
	gateway.WriteJSON(w, status, "application/json", v)
}

// internalError is APISIX's page for an error of its own.
const internalError = `<!DOCTYPE html>
<html>
<head>
<meta content="text/html;charset=utf-8" http-equiv="Content-Type">
<meta content="utf-8" http-equiv="encoding">
<title>500 Internal Server Error</title>
</head>
<body>
<h1>An error occurred.</h1>
<p>You can report issue to <a href="https://github.com/apache/apisix/issues">APISIX</a></p>
<p><em>Faithfully yours, <a href="https://apisix.apache.org/">APISIX</a>.</em></p>
</body>
</html>
`
