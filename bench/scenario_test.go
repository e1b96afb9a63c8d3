package bench

import (
	"encoding/json"
	"strings"
	"testing"

	"armrepro/assets"
)

func TestBuiltInScenarios(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"single-upstream": nil,
		"two-plugins":     {"limit-count", "prometheus"},
	}
	for _, name := range assets.ScenarioNames() {
		text, err := assets.Scenario(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ReadScenario(strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(s.Plugins(), " "); s.Name != name || got != strings.Join(want[name], " ") {
			t.Errorf("%s: name %q, plugins %q", name, s.Name, got)
		}
		body, err := s.RouteBody([]string{"127.0.0.1:1980", "127.0.0.1:1981"})
		if err != nil {
			t.Fatal(err)
		}
		var route struct {
			URI      string
			Plugins  map[string]map[string]any
			Upstream struct {
				Type  string
				Nodes map[string]int
			}
		}
		if err := json.Unmarshal(body, &route); err != nil {
			t.Fatal(err)
		}
		if route.URI != "/hello" || route.Upstream.Type != "roundrobin" || len(route.Upstream.Nodes) != 2 || route.Upstream.Nodes["127.0.0.1:1981"] != 1 {
			t.Errorf("%s: route %s", name, body)
		}
		// run.sh writes the number in full; an exponent is not what it sent.
		if name == "two-plugins" && !strings.Contains(string(body), `"count":2000000000000,`) {
			t.Errorf("the count of limit-count has changed its form: %s", body)
		}
	}
}

func TestReadScenarioErrors(t *testing.T) {
	t.Parallel()
	const good = "name: a\npath: /x\nroute: {uri: /x}\n"
	if _, err := ReadScenario(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "empty"},
		{"# nothing\n", "empty"},
		{"- a\n", "line 1: want a mapping with the keys expect, name, path, route, title"},
		{"name: a\npath: /x\n", `no key "route"`},
		{"name: A b\npath: /x\nroute: {uri: /x}\n", `line 1: name: "A b" has to match`},
		{"name: a\npath: x\nroute: {uri: /x}\n", `line 2: path: "x" has to begin with a slash`},
		{"name: a\npath: \"/x\\r\\nHost: y\"\nroute: {uri: /x}\n", "line 2: path:"},
		{"name: a\npath: [1]\nroute: {uri: /x}\n", "line 2: path: want a text"},
		{"name: a\npath: /x\nroute: /x\n", "line 3: route: want a mapping"},
		{"name: a\npath: /x\nroute: {}\n", "line 3: route: it is empty"},
		{"name: a\npath: /x\nroute: {uri: /x, upstream: {type: roundrobin}}\n", "line 3: route: remove upstream"},
		{"name: a\npath: /x\nroute:\n  uri: .nan\n", "line 4: route: want a mapping that JSON can hold"},
		{"name: a\npath: /x\nroute: {uri: /x, vars: {1: 2, [a]: b}}\n", "line 3: route: want a mapping that JSON can hold"},
		{"name: a\npath: /x\nroute: {uri: /x, uri: /y}\n", "line 3: route: want"},
		{good + "path: /y\n", "line 4: path is already on line 2"},
		{good + "pluginz: 1\n", `line 4: unknown key "pluginz"; use expect, name,`},
		{good + "expect: hello\n", "line 4: want a mapping with the keys absent_headers, body, headers, metric"},
		{good + "expect:\n  header: [A]\n", `line 5: unknown key "expect.header"; use absent_headers,`},
		{good + "expect:\n  headers: {A: b}\n", "line 5: expect.headers: want a list of texts"},
		{good + "---\nname: b\n", "line 5: a second YAML document"},
		{good + "---\n", "a second YAML document"},
		{good + "---\n: [\n", "read scenario: yaml: "},
		{"name: a\npath: /y\nroute: {uri: /x}\n", `line 2: path: "/y" does not match the route's uri ["/x"]`},
		{"name: a\npath: /x/\nroute: {uris: [/x, /y/*]}\n", `["/x" "/y/*"]`},
		{"name: a\npath: [\n", "read scenario: yaml: "},
		{strings.Repeat("#", maxScenario+1), "larger than"},
	} {
		_, err := ReadScenario(strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: error %v, want one with %q", tt.text, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "bench.") || strings.Contains(err.Error(), "interface")) {
			t.Errorf("%.40q: error %v names a Go type", tt.text, err)
		}
	}
}

// TestReadScenarioRouted reads paths that the route's uri matches, or may match.
func TestReadScenarioRouted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, route string }{
		{"/x", "uri: /x"}, {"/x?a=/y", "uri: /x"}, {"/x%20y", "uri: /x y"}, {"/x/y/z", "uri: /x/*"},
		{"/x", `uri: "*"`}, {"/y/z", "uris: [/x, /y/*]"}, {"/user/7", "uri: /user/:id"}, {"/x", "vars: []"},
	} {
		text := "name: a\npath: " + tt.path + "\nroute: {" + tt.route + "}\n"
		if _, err := ReadScenario(strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzReadScenario(f *testing.F) {
	for _, name := range assets.ScenarioNames() {
		text, err := assets.Scenario(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("name: a\npath: /x\nroute: {1: 2, [a]: b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadScenario(strings.NewReader(text))
		if err != nil {
			return
		}
		body, err := s.RouteBody([]string{"127.0.0.1:1"})
		if err != nil || !json.Valid(body) {
			t.Errorf("an accepted scenario has no route: %v %s", err, body)
		}
	})
}
