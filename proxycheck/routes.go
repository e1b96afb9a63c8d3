package proxycheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
)

// existingRoute is what decides whether a route of the gateway takes a request.
type existingRoute struct {
	id      string
	URI     string   `json:"uri"`
	URIs    []string `json:"uris"`
	Host    string   `json:"host"`
	Hosts   []string `json:"hosts"`
	Methods []string `json:"methods"`
	Status  *int     `json:"status"`
}

type routeNode struct {
	Key   string        `json:"key"`
	Value existingRoute `json:"value"`
}

var errNoRoutes = errors.New("it is neither a 2.x nor a 3.x list of routes")

// parseRoutes reads the answer to GET /routes: {"node":{"nodes":[…]}} from
// 2.x, {"list":[…]} from 3.x. An empty list may be written {}, since Lua has
// one type for both.
func parseRoutes(body []byte) ([]existingRoute, error) {
	var answer struct {
		List json.RawMessage `json:"list"`
		Node struct {
			Nodes json.RawMessage `json:"nodes"`
		} `json:"node"`
	}
	err := json.Unmarshal(body, &answer)
	list := answer.List
	if list == nil {
		list = answer.Node.Nodes
	}
	if err != nil || list == nil {
		return nil, errNoRoutes
	}
	if bytes.Equal(list, []byte("{}")) {
		return nil, nil
	}
	var nodes []routeNode
	if err := json.Unmarshal(list, &nodes); err != nil {
		return nil, errNoRoutes
	}
	routes := make([]existingRoute, len(nodes))
	for i, n := range nodes {
		routes[i] = n.Value
		routes[i].id = foreign(path.Base(n.Key))
	}
	return routes, nil
}

// takes says whether the route answers GET requests for path on host, as far
// as can be said: conditions on anything else count as met.
func (r existingRoute) takes(path, host string) bool {
	on := r.Status == nil || *r.Status != 0
	isGet := func(method string) bool { return strings.EqualFold(method, http.MethodGet) }
	isHost := func(pattern string) bool { return matchHost(pattern, host) }
	isPath := func(pattern string) bool { return matchURI(pattern, path) }
	hosts := r.Hosts
	if r.Host != "" {
		hosts = append(hosts, r.Host)
	}
	return on && (len(r.Methods) == 0 || slices.ContainsFunc(r.Methods, isGet)) &&
		(len(hosts) == 0 || slices.ContainsFunc(hosts, isHost)) && slices.ContainsFunc(append(r.URIs, r.URI), isPath)
}

// matchURI: an exact path, or a prefix that ends in an asterisk.
func matchURI(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}

// matchHost: an exact name, or *.domain.
func matchHost(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	return strings.EqualFold(pattern, host)
}

// pattern is what the route takes, for an error message.
func (r existingRoute) pattern() string {
	uris := r.URIs
	if r.URI != "" {
		uris = append([]string{r.URI}, uris...)
	}
	return foreign(strings.Join(append(uris, r.Hosts...), " "))
}
