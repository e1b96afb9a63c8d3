package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object. Numbers in it are json.Number, so that a count of
// 2000000000000 comes out as it went in.
type object = map[string]any

// spec is what a route asks for, checked. It holds what the two scenarios need;
// anything else that APISIX knows is refused rather than ignored.
type spec struct {
	// id and name label the route on metrics: the name if preferName is set
	// and there is one.
	id, name   string
	preferName bool

	uri      string
	priority int64
	disabled bool
	nodes    []node
	// limit is nil without the plugin limit-count.
	limit *limitSpec
	// prometheus says whether that plugin is on.
	prometheus bool
}

// node is one upstream address with its weight.
type node struct {
	host   string
	port   int64
	weight int64
}

func (n node) address() string { return net.JoinHostPort(n.host, strconv.FormatInt(n.port, 10)) }

// limitSpec is the configuration of limit-count, by the client's address.
type limitSpec struct {
	count    int64
	window   int64 // seconds
	rejected int
	message  string
	headers  bool // X-RateLimit-* on the answers
}

// plugins are the plugins that are built in, sorted.
var plugins = []string{"limit-count", "prometheus"}

// parseObject reads one JSON object.
func parseObject(body []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the end")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errWrongType("object", v)
	}
	return o, nil
}

// parseSpec checks a route and reads it. The errors are worded as APISIX words
// them.
func parseSpec(o object, d Dialect) (*spec, error) {
	s := &spec{}
	if err := s.readRoute(o); err != nil {
		return nil, fmt.Errorf("invalid configuration: %w", err)
	}
	conf, _ := o["plugins"].(object)
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		if !slices.Contains(plugins, name) {
			return nil, fmt.Errorf("unknown plugin [%s]", name)
		}
		if err := s.readPlugin(name, conf[name], d); err != nil {
			return nil, fmt.Errorf("failed to check the configuration of plugin %s err: %w", name, err)
		}
	}
	return s, nil
}

func (s *spec) readRoute(o object) (err error) {
	f := fields{o: o}
	s.uri = f.text("uri", "")
	s.id = f.text("id", "")
	s.name = f.text("name", "")
	s.priority = f.integer("priority", 0, math.MinInt32, math.MaxInt32)
	s.disabled = f.integer("status", 1, 0, 1) == 0
	f.object("plugins")
	f.text("desc", "")
	f.object("labels")
	f.integer("create_time", 0, 0, math.MaxInt64)
	f.integer("update_time", 0, 0, math.MaxInt64)
	upstream := f.object("upstream")
	f.require("uri")
	f.require("upstream")
	f.check("uri", checkURI(s.uri))
	if f.err == nil {
		s.nodes, err = readUpstream(upstream)
		f.check("upstream", err)
	}
	return f.done()
}

// checkURI accepts an exact path, or a prefix that ends in an asterisk.
func checkURI(uri string) error {
	switch {
	case len(uri) == 0 || len(uri) > 4096:
		return errors.New("string too short or too long, expected 1 to 4096 bytes")
	case uri[0] != '/':
		return fmt.Errorf("%q does not begin with a slash", uri)
	case strings.Contains(uri[:len(uri)-1], "*"):
		return fmt.Errorf("%q has an asterisk before its end", uri)
	}
	return nil
}

func readUpstream(o object) (nodes []node, err error) {
	f := fields{o: o}
	f.one("type", "roundrobin")
	f.one("scheme", "http")
	f.one("pass_host", "pass")
	f.one("hash_on", "vars")
	f.text("name", "")
	f.text("desc", "")
	f.seen = append(f.seen, "nodes")
	f.require("nodes")
	if f.err == nil {
		nodes, err = readNodes(o["nodes"])
		f.check("nodes", err)
	}
	return nodes, f.done()
}

// readNodes reads both forms: an object of addresses and weights, and an array
// of objects.
func readNodes(v any) (nodes []node, err error) {
	switch v := v.(type) {
	case object:
		for _, address := range slices.Sorted(maps.Keys(v)) {
			n, err := readAddress(address)
			if err != nil {
				return nil, err
			}
			f := fields{o: object{"weight": v[address]}}
			n.weight = f.integer("weight", 1, 0, math.MaxInt32)
			if err := f.done(); err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
		return nodes, nil
	case []any:
		for i, item := range v {
			o, ok := item.(object)
			if !ok {
				return nil, fmt.Errorf("failed to validate item %d: %w", i+1, errWrongType("object", item))
			}
			f := fields{o: o}
			n := node{
				host:   f.text("host", ""),
				port:   f.integer("port", 80, 1, 65535),
				weight: f.integer("weight", 1, 0, math.MaxInt32),
			}
			f.integer("priority", 0, 0, 0)
			f.require("host")
			f.require("weight")
			f.check("host", checkHost(n.host))
			if err := f.done(); err != nil {
				return nil, fmt.Errorf("failed to validate item %d: %w", i+1, err)
			}
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, errors.New("object matches none of the required")
}

// readAddress reads host:port or host, whose port is 80.
func readAddress(address string) (node, error) {
	n := node{host: address, port: 80}
	if host, port, err := net.SplitHostPort(address); err == nil {
		n.host = host
		n.port, err = strconv.ParseInt(port, 10, 64)
		if err != nil || n.port < 1 || n.port > 65535 {
			return n, fmt.Errorf("invalid port in %q", address)
		}
	}
	if err := checkHost(n.host); err != nil {
		return n, fmt.Errorf("invalid address %q: %w", address, err)
	}
	return n, nil
}

// checkHost accepts a name or an IP address.
func checkHost(host string) error {
	if net.ParseIP(host) != nil {
		return nil
	}
	notInName := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", r)
	}
	if host == "" || len(host) > 253 || strings.ContainsFunc(host, notInName) {
		return fmt.Errorf("%q is no host name", host)
	}
	return nil
}

func (s *spec) readPlugin(name string, v any, d Dialect) error {
	o, ok := v.(object)
	if !ok {
		return errWrongType("object", v)
	}
	f := fields{o: o}
	if name == "prometheus" {
		s.preferName = f.boolean("prefer_name", false)
		s.prometheus = true
		return f.done()
	}
	s.limit = &limitSpec{}
	f.countAndWindow(s.limit, d)
	s.limit.rejected = int(f.integer("rejected_code", 503, 200, 599))
	s.limit.message = f.text("rejected_msg", "")
	s.limit.headers = f.boolean("show_limit_quota_header", true)
	f.boolean("allow_degradation", false)
	f.one("key", "remote_addr")
	// APISIX knows more of both; the counting here is in this process only,
	// by the client's address.
	f.enum("key_type", []string{"var", "var_combination", "constant"}, "var")
	f.enum("policy", []string{"local", "redis", "redis-cluster"}, "local")
	return f.done()
}

// countAndWindow reads count and time_window. 2.x asks for both first and has
// integers only; 3.x checks each value against several schemas.
func (f *fields) countAndWindow(l *limitSpec, d Dialect) {
	const noMatch = "value should match only one schema, but matches none"
	if d == V2 {
		f.require("count")
		f.require("time_window")
		l.count = f.positive("count", "")
		l.window = f.positive("time_window", "")
		return
	}
	l.count = f.positive("count", noMatch)
	l.window = f.positive("time_window", noMatch)
	if f.err == nil && (f.o["count"] == nil || f.o["time_window"] == nil) {
		f.err = errors.New(noMatch)
	}
}
