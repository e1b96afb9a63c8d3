package gateway

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseSpec(t *testing.T) {
	t.Parallel()
	const up = `"upstream":{"type":"roundrobin","nodes":{"127.0.0.1:1980":1}}`
	one := []node{at("127.0.0.1", 1980, 1)}
	limit := limitSpec{Count: 5, Seconds: 60, Rejected: 503, Headers: true, Key: "remote_addr", KeyType: "var", Policy: "local"}
	big, quiet := limit, limit
	big.Count = 2e12
	quiet.Message, quiet.Headers = "no", false
	for _, test := range []struct {
		name string
		body string
		want *spec
		err  string
	}{
		{name: "scenario 1", body: `{"uri":"/hello","plugins":{},` + up + `}`, want: &spec{Status: 1, URI: "/hello", nodes: one}},
		{
			name: "scenario 2",
			body: `{"uri":"/hello","plugins":{"limit-count":{"count":2000000000000,"time_window":60,"rejected_code":503,"key":"remote_addr"},"prometheus":{}},` + up + `}`,
			want: &spec{Status: 1, URI: "/hello", nodes: one, prometheus: &prometheusSpec{}, limit: &big},
		},
		{
			name: "nodes as an array",
			body: `{"uri":"/a*","upstream":{"nodes":[{"host":"localhost","port":1,"weight":0},{"host":"::1","weight":2}]}}`,
			want: &spec{Status: 1, URI: "/a*", nodes: []node{at("localhost", 1, 0), at("::1", 80, 2)}},
		},
		{
			name: "nodes as an object",
			body: `{"uri":"/","upstream":{"nodes":{"[::1]:2":3,"a.example":4,"::1":5}}}`,
			want: &spec{Status: 1, URI: "/", nodes: []node{at("::1", 80, 5), at("::1", 2, 3), at("a.example", 80, 4)}},
		},
		{
			name: "the rest",
			body: `{"id":"7","name":"n","desc":"d","labels":{"a":"b"},"status":0,"priority":-3,"uri":"/","plugins":{"prometheus":{"prefer_name":true},"limit-count":{"count":5,"time_window":60,"rejected_msg":"no","show_limit_quota_header":false}},` + up + `}`,
			want: &spec{
				ID: "7", Name: "n", Desc: "d", Labels: map[string]string{"a": "b"}, URI: "/", Priority: -3, nodes: one,
				prometheus: &prometheusSpec{PreferName: true}, limit: &quiet,
			},
		},
		{name: "no uri", body: `{` + up + `}`, err: `invalid configuration: property "uri" is required`},
		{name: "no upstream", body: `{"uri":"/"}`, err: `property "upstream" is required`},
		{name: "no nodes", body: `{"uri":"/","upstream":{}}`, err: `property "upstream" validation failed: property "nodes" is required`},
		{name: "uri of a wrong type", body: `{"uri":5,` + up + `}`, err: `property "uri" validation failed: wrong type: expected string, got number`},
		{name: "uri without a slash", body: `{"uri":"hello",` + up + `}`, err: `is neither a path nor a prefix`},
		{name: "asterisk inside", body: `{"uri":"/*/b",` + up + `}`, err: `is neither a path nor a prefix`},
		{name: "unknown member", body: `{"uri":"/","methods":["GET"],` + up + `}`, err: `additional properties forbidden, found methods`},
		{name: "unknown plugin", body: `{"uri":"/","plugins":{"cors":{}},` + up + `}`, err: `unknown plugin [cors]`},
		{name: "plugin of a wrong type", body: `{"uri":"/","plugins":{"prometheus":1},` + up + `}`, err: `plugin prometheus err: wrong type: expected object, got number`},
		{name: "plugins of a wrong type", body: `{"uri":"/","plugins":[],` + up + `}`, err: `property "plugins" validation failed: wrong type: expected object, got array`},
		{name: "another balancer", body: `{"uri":"/","upstream":{"type":"chash","nodes":{}}}`, err: `property "type" validation failed: the built-in gateway knows "roundrobin" only`},
		{name: "another scheme", body: `{"uri":"/","upstream":{"scheme":"grpc","nodes":{}}}`, err: `knows "http" only`},
		{name: "weight of a wrong type", body: `{"uri":"/","upstream":{"nodes":{"a":"1"}}}`, err: `property "nodes" validation failed: wrong type: expected integer, got string`},
		{name: "negative weight", body: `{"uri":"/","upstream":{"nodes":{"a":-1}}}`, err: `expected integer, got number -1`},
		{name: "fraction", body: `{"uri":"/","upstream":{"nodes":{"a":1.5}}}`, err: `wrong type: expected integer, got number 1.5`},
		{name: "bad port", body: `{"uri":"/","upstream":{"nodes":{"a:0":1}}}`, err: `invalid port in "a:0"`},
		{name: "bad host", body: `{"uri":"/","upstream":{"nodes":{"a b":1}}}`, err: `"a b" is no host name`},
		{name: "bad item", body: `{"uri":"/","upstream":{"nodes":[{"host":"a","weight":1},3]}}`, err: `wrong type: expected object, got number`},
		{name: "item without a weight", body: `{"uri":"/","upstream":{"nodes":[{"host":"a"}]}}`, err: `property "weight" is required`},
		{name: "item with a bad port", body: `{"uri":"/","upstream":{"nodes":[{"host":"a","port":65536,"weight":1}]}}`, err: `wrong type: expected integer, got number 65536`},
		{name: "code", body: `{"uri":"/","plugins":{"limit-count":{"count":1,"time_window":1,"rejected_code":99}},` + up + `}`, err: `property "rejected_code" validation failed: expected 99 to be at least 200`},
		{name: "another policy", body: `{"uri":"/","plugins":{"limit-count":{"count":1,"time_window":1,"policy":"redis"}},` + up + `}`, err: `knows "local" only`},
		{name: "another key", body: `{"uri":"/","plugins":{"limit-count":{"count":1,"time_window":1,"key":"uri"}},` + up + `}`, err: `knows "remote_addr" only`},
		{name: "a group", body: `{"uri":"/","plugins":{"limit-count":{"count":1,"time_window":1,"group":"g"}},` + up + `}`, err: `additional properties forbidden, found group`},
	} {
		got, err := parseSpec([]byte(test.body))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q in it", test.name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		diff := cmp.Diff(test.want, got, cmp.AllowUnexported(spec{}), cmpopts.IgnoreFields(spec{}, "Upstream", "Plugins"))
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestParseObject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"a":1} x`: "unexpected data",
		`{"a":1}{}`: "unexpected data",
		`[]`:        "expected object, got array",
		`null`:      "expected object, got null",
		`"x"`:       "expected object, got string",
		`{`:         "unexpected EOF",
		``:          "EOF",
	} {
		if o, err := parseObject([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", body, o, err, want)
		}
	}
}

// FuzzRoute: whatever the Admin API accepts can be served, and is accepted
// again as it is stored.
func FuzzRoute(f *testing.F) {
	for _, seed := range []string{
		plainBody("/hello", "127.0.0.1:1980"),
		pluginBody("/hello", 2e12, "127.0.0.1:1980", "127.0.0.1:1981"),
		`{"uri":"/a*","upstream":{"nodes":[{"host":"::1","port":1,"weight":0}]}}`,
		`{"uri":"/hello","upstream":{"type":"roundrobin","nodes":"x"}}`,
		`{"uri":"/hello","plugins":{"limit-count":{"count":0}},"upstream":{"nodes":{}}}`,
		`{"id":1e3,"uri":"/","upstream":{"nodes":{"[::1]:80":1e0}}}`,
		`{"uri":"/hello",`, `init_dir`, `null`, `{"uri":null}`, `[[[[`, `{"uri":"/","upstream":{"nodes":{"":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseObject(body)
		if err != nil || checkRoute(o, "1") != nil {
			return
		}
		sp, err := parseSpec(Encode(o))
		if err != nil {
			t.Fatalf("stored as %s: %v", Encode(o), err)
		}
		r := newRoute("1", sp, nil, newMetrics())
		table := newTable(map[string]*route{"1": r})
		if found := table.find(strings.TrimSuffix(sp.URI, "*")); sp.Status == 1 && found != r {
			t.Errorf("%s is not found", sp.URI)
		}
		for range 3 {
			if n := r.balancer.next(); n != nil && n.weight <= 0 {
				t.Errorf("picked %+v", n)
			}
		}
		if r.limiter != nil {
			if left, _, ok := r.limiter.take("a", epoch); !ok || left != sp.limit.Count-1 {
				t.Errorf("the first request of %d: %d left, %v", sp.limit.Count, left, ok)
			}
		}
	})
}
