package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spec is a route. It holds what the two scenarios need; anything else that
// APISIX knows is refused rather than ignored.
type spec struct {
	ID       any               `json:"id"`
	Name     string            `json:"name"`
	Desc     string            `json:"desc"`
	Labels   map[string]string `json:"labels"`
	Created  int64             `json:"create_time"`
	Updated  int64             `json:"update_time"`
	URI      string            `json:"uri"`
	Priority int32             `json:"priority"`
	Status   int               `json:"status"`
	// Upstream and Plugins are read further into what follows them.
	Upstream *upstreamSpec              `json:"upstream"`
	Plugins  map[string]json.RawMessage `json:"plugins"`

	nodes      []node
	limit      *limitSpec
	prometheus *prometheusSpec
}

type upstreamSpec struct {
	Name     string          `json:"name"`
	Desc     string          `json:"desc"`
	Type     string          `json:"type"`
	Scheme   string          `json:"scheme"`
	PassHost string          `json:"pass_host"`
	HashOn   string          `json:"hash_on"`
	Nodes    json.RawMessage `json:"nodes"`
}

// node is one upstream address with its weight.
type node struct {
	Host   string  `json:"host"`
	Port   uint16  `json:"port"`
	Weight *uint32 `json:"weight"`
}

func (n node) address() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }

// limitSpec is the configuration of limit-count, by the client's address.
type limitSpec struct {
	Count       int64  `json:"count"`
	Seconds     int64  `json:"time_window"`
	Rejected    int    `json:"rejected_code"`
	Message     string `json:"rejected_msg"`
	Headers     bool   `json:"show_limit_quota_header"`
	Degradation bool   `json:"allow_degradation"`
	Key         string `json:"key"`
	KeyType     string `json:"key_type"`
	Policy      string `json:"policy"`
}

type prometheusSpec struct {
	PreferName bool `json:"prefer_name"`
}

// plugins are the plugins that are built in, sorted.
var plugins = []string{"limit-count", "prometheus"}

// parseSpec checks a route and reads it. The errors are worded as APISIX words
// them.
func parseSpec(body []byte) (*spec, error) {
	s := &spec{Status: 1}
	if err := s.readRoute(body); err != nil {
		return nil, fmt.Errorf("invalid configuration: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Plugins)) {
		var err error
		switch name {
		case "limit-count":
			s.limit, err = readLimit(s.Plugins[name])
		case "prometheus":
			s.prometheus = &prometheusSpec{}
			err = strict(s.Plugins[name], s.prometheus)
		default:
			return nil, fmt.Errorf("unknown plugin [%s]", name)
		}
		if err != nil {
			return nil, fmt.Errorf("failed to check the configuration of plugin %s err: %w", name, err)
		}
	}
	return s, nil
}

func (s *spec) readRoute(body []byte) (err error) {
	if err := strict(body, s); err != nil {
		return err
	}
	switch {
	case s.URI == "":
		return errors.New(`property "uri" is required`)
	case s.Upstream == nil:
		return errors.New(`property "upstream" is required`)
	case s.Status != 0 && s.Status != 1:
		return invalid("status", errNoEnum)
	case s.URI[0] != '/' || strings.Contains(s.URI[:len(s.URI)-1], "*"):
		return invalid("uri", fmt.Errorf("%q is neither a path nor a prefix that ends in an asterisk", s.URI))
	}
	s.nodes, err = s.Upstream.read()
	return invalid("upstream", err)
}

func (u *upstreamSpec) read() (nodes []node, err error) {
	err = cmp.Or(
		only("type", u.Type, "", "roundrobin"),
		only("scheme", u.Scheme, "", "http"),
		only("pass_host", u.PassHost, "", "pass"),
		only("hash_on", u.HashOn, "", "vars"),
	)
	switch {
	case err != nil:
		return nil, err
	case u.Nodes == nil:
		return nil, errors.New(`property "nodes" is required`)
	case u.Nodes[0] == '{':
		nodes, err = readWeights(u.Nodes)
	case u.Nodes[0] == '[':
		err = strict(u.Nodes, &nodes)
	default:
		err = errors.New("object matches none of the required")
	}
	for i := range nodes {
		nodes[i].Port = cmp.Or(nodes[i].Port, 80)
		if err == nil {
			err = nodes[i].check()
		}
	}
	return nodes, invalid("nodes", err)
}

// readWeights reads the nodes that are written as an object of addresses and
// weights.
func readWeights(body []byte) (nodes []node, err error) {
	weights := map[string]*uint32{}
	if err := strict(body, &weights); err != nil {
		return nil, err
	}
	for _, address := range slices.Sorted(maps.Keys(weights)) {
		n := node{Host: address, Weight: weights[address]}
		if host, port, err := net.SplitHostPort(address); err == nil {
			number, err := strconv.ParseUint(port, 10, 16)
			if err != nil || number == 0 {
				return nil, fmt.Errorf("invalid port in %q", address)
			}
			n.Host, n.Port = host, uint16(number)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)

func (n node) check() error {
	switch {
	case n.Weight == nil:
		return errors.New(`property "weight" is required`)
	case net.ParseIP(n.Host) == nil && !hostName.MatchString(n.Host):
		return invalid("host", fmt.Errorf("%q is no host name", n.Host))
	}
	return nil
}

// maxSeconds is the longest time that a time.Duration holds.
const maxSeconds = math.MaxInt64 / int64(time.Second)

func readLimit(body []byte) (*limitSpec, error) {
	l := &limitSpec{Rejected: http.StatusServiceUnavailable, Headers: true, Key: "remote_addr", KeyType: "var", Policy: "local"}
	if err := strict(body, l); err != nil {
		return nil, err
	}
	// APISIX checks both against several schemas.
	noSchema := errors.New("value should match only one schema, but matches none")
	switch {
	case l.Count <= 0:
		return nil, invalid("count", noSchema)
	case l.Seconds <= 0 || l.Seconds > maxSeconds:
		return nil, invalid("time_window", noSchema)
	case l.Rejected < 200 || l.Rejected > 599:
		return nil, invalid("rejected_code", fmt.Errorf("expected %d to be at least 200 and at most 599", l.Rejected))
	case !slices.Contains([]string{"var", "var_combination", "constant"}, l.KeyType):
		return nil, invalid("key_type", errNoEnum)
	}
	// The counting here is in this process only, by the client's address.
	return l, cmp.Or(
		only("key", l.Key, "remote_addr"),
		only("key_type", l.KeyType, "var"),
		only("policy", l.Policy, "local"),
	)
}

// object is a JSON object. Numbers in it are json.Number, so that a count of
// 2000000000000 comes out as it went in.
type object = map[string]any

// parseObject reads one JSON object.
func parseObject(body []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var o object
	err := dec.Decode(&o)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("unexpected data after the end")
		}
	}
	if err == nil && o == nil {
		err = errors.New("wrong type: expected object, got null")
	}
	return o, wordType(err)
}

// strict reads JSON into v, which has to know every member of it.
func strict(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		return nil
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return fmt.Errorf("additional properties forbidden, found %s", strings.Trim(name, `"`))
	}
	return wordType(err)
}

// wordType words a value of a wrong type as APISIX does.
func wordType(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Slice: "array",
		reflect.Map: "object", reflect.Struct: "object",
	}[wrong.Type.Kind()]
	err = fmt.Errorf("wrong type: expected %s, got %s", cmp.Or(want, "integer"), wrong.Value)
	if wrong.Field == "" {
		return err
	}
	return invalid(wrong.Field, err)
}

// invalid says which member err is about; nil stays nil.
func invalid(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("property %q validation failed: %w", name, err)
}

var errNoEnum = errors.New("matches none of the enum values")

// only is an error unless value is one of known, of which the last is named.
func only(name, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return invalid(name, fmt.Errorf("the built-in gateway knows %q only", known[len(known)-1]))
}
