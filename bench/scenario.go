package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Scenario is what the gateway is asked to do under load.
type Scenario struct {
	// Name identifies it: lower-case letters, digits and hyphens.
	Name string
	// Title is what a person reads.
	Title string
	// Path is what the load requests.
	Path string
	// Route is the Admin API's route object without its upstream.
	Route map[string]any
	// Expect is what proves that the route is live.
	Expect Expect
}

// Expect is what an answer through the route has to look like.
type Expect struct {
	Body string
	// Headers have to be there, AbsentHeaders must not.
	Headers       []string
	AbsentHeaders []string
	// Metric has to count the route; empty for none.
	Metric string
}

// maxScenario bounds a scenario file.
const maxScenario = 1 << 20

var scenarioName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// ReadScenario reads a scenario from YAML. Errors name the line and the key. An
// unknown key is one: a misspelled one would measure something else.
func ReadScenario(r io.Reader) (Scenario, error) {
	var s Scenario
	if err := s.read(r); err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	return s, nil
}

func (s *Scenario) read(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxScenario+1))
	if err != nil {
		return err
	}
	if len(text) > maxScenario {
		return fmt.Errorf("larger than %d bytes", maxScenario)
	}
	var doc, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&doc); errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	} else if err != nil {
		return err
	}
	if err := documents.Decode(&second); err == nil {
		return fmt.Errorf("line %d: a second YAML document; put each scenario into its own file", second.Content[0].Line)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	lines, err := s.decode(doc.Content[0])
	if err != nil {
		return err
	}
	return s.check(lines)
}

// decode fills in s and returns the line of each key.
func (s *Scenario) decode(node *yaml.Node) (map[string]int, error) {
	var expect yaml.Node
	lines, err := decodeKeys(node, "", map[string]any{
		"name": &s.Name, "title": &s.Title, "path": &s.Path, "route": &s.Route, "expect": &expect,
	})
	if err == nil && expect.Kind != 0 {
		_, err = decodeKeys(&expect, "expect.", map[string]any{
			"body": &s.Expect.Body, "headers": &s.Expect.Headers, "absent_headers": &s.Expect.AbsentHeaders, "metric": &s.Expect.Metric,
		})
	}
	return lines, err
}

// decodeKeys decodes a mapping into fields. The decoder's own errors would name Go
// types.
func decodeKeys(node *yaml.Node, prefix string, fields map[string]any) (map[string]int, error) {
	known := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want a mapping with the keys %s", node.Line, known)
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field, ok := fields[key.Value]
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d: unknown key %q; use %s", key.Line, prefix+key.Value, known)
		case lines[key.Value] > 0:
			return nil, fmt.Errorf("line %d: %s is already on line %d", key.Line, prefix+key.Value, lines[key.Value])
		}
		lines[key.Value] = key.Line
		if want, err := decodeValue(value, field); err != nil {
			return nil, fmt.Errorf("line %d: %s%s: want %s", value.Line, prefix, key.Value, want)
		}
	}
	return lines, nil
}

// decodeValue decodes into a field, and says what that takes.
func decodeValue(value *yaml.Node, field any) (want string, err error) {
	switch field := field.(type) {
	case *yaml.Node:
		*field = *value
		return "", nil
	case *string:
		want = "a text"
	case *[]string:
		want = "a list of texts"
	case *map[string]any:
		want = "a mapping that JSON can hold: keys are texts, each there once; no .nan or .inf"
		if err = value.Decode(field); err == nil {
			_, err = json.Marshal(*field)
		}
		return want, err
	}
	return want, value.Decode(field)
}

// check looks at the values of the keys, which are on the given lines.
func (s *Scenario) check(lines map[string]int) error {
	for _, key := range []string{"name", "path", "route"} {
		if lines[key] == 0 {
			return fmt.Errorf("no key %q", key)
		}
	}
	switch {
	case !scenarioName.MatchString(s.Name):
		return fmt.Errorf("line %d: name: %q has to match %s", lines["name"], s.Name, scenarioName)
	case !strings.HasPrefix(s.Path, "/") || strings.ContainsFunc(s.Path, notPrintable):
		return fmt.Errorf("line %d: path: %q has to begin with a slash and hold no spaces", lines["path"], s.Path)
	case len(s.Route) == 0:
		return fmt.Errorf("line %d: route: it is empty", lines["route"])
	case s.Route["upstream"] != nil:
		return fmt.Errorf("line %d: route: remove upstream; the run fills in its own", lines["route"])
	case !s.routed():
		return fmt.Errorf("line %d: path: %q does not match the route's uri %q", lines["path"], s.Path, s.uris())
	}
	s.Title = cmp.Or(s.Title, s.Name)
	return nil
}

// uris are those that the route matches. The Admin API refuses a route that has
// none, or one that is no text.
func (s *Scenario) uris() []string {
	list, _ := s.Route["uris"].([]any)
	var uris []string
	for _, uri := range append(list, s.Route["uri"]) {
		if text, ok := uri.(string); ok {
			uris = append(uris, text)
		}
	}
	return uris
}

// routed reports whether the route matches the path. A uri is exact, or a prefix
// before its star. Parameters (/user/:name) are left to the gateway: not every
// router of APISIX has them.
func (s *Scenario) routed() bool {
	path, _, _ := strings.Cut(s.Path, "?")
	// The gateway looks for the route of the decoded path.
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	uris := s.uris()
	return len(uris) == 0 || slices.ContainsFunc(uris, func(uri string) bool {
		prefix, _, wildcard := strings.Cut(uri, "*")
		return strings.Contains(uri, ":") || path == uri || wildcard && strings.HasPrefix(path, prefix)
	})
}

func notPrintable(r rune) bool { return r <= ' ' || r >= 0x7f }

// RouteBody is the Admin API's JSON for the route, with nodes (host:port) of
// equal weight as its upstream.
func (s *Scenario) RouteBody(nodes []string) ([]byte, error) {
	weights := make(map[string]int, len(nodes))
	for _, n := range nodes {
		weights[n] = 1
	}
	route := maps.Clone(s.Route)
	route["upstream"] = map[string]any{"type": "roundrobin", "nodes": weights}
	body, err := json.Marshal(route)
	if err != nil {
		return nil, fmt.Errorf("route: %w", err)
	}
	return body, nil
}

// Plugins lists the plugins that the route uses, sorted.
func (s *Scenario) Plugins() []string {
	plugins, _ := s.Route["plugins"].(map[string]any)
	return slices.Sorted(maps.Keys(plugins))
}
