package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Scenario is what the gateway is asked to do under load.
type Scenario struct {
	// Name identifies it: lower-case letters, digits and hyphens.
	Name string `yaml:"name"`
	// Title is what a person reads.
	Title string `yaml:"title"`
	// Path is what the load requests.
	Path string `yaml:"path"`
	// Route is the Admin API's route object without its upstream.
	Route map[string]any `yaml:"route"`
	// Expect is what proves that the route is live.
	Expect Expect `yaml:"expect"`
}

// Expect is what an answer through the route has to look like.
type Expect struct {
	Body string `yaml:"body"`
	// Headers have to be there, AbsentHeaders must not.
	Headers       []string `yaml:"headers"`
	AbsentHeaders []string `yaml:"absent_headers"`
	// Metric has to count the route; empty for none.
	Metric string `yaml:"metric"`
}

// maxScenario bounds a scenario file.
const maxScenario = 1 << 20

var scenarioName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// ReadScenario reads a scenario from YAML. A field it does not know is an
// error: a misspelled one would measure something else.
func ReadScenario(r io.Reader) (Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxScenario+1))
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	if len(text) > maxScenario {
		return Scenario{}, fmt.Errorf("read scenario: larger than %d bytes", maxScenario)
	}
	var s Scenario
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	switch err := dec.Decode(&s); {
	case errors.Is(err, io.EOF):
		return Scenario{}, errors.New("read scenario: it is empty")
	case err != nil:
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	if err := s.check(); err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	return s, nil
}

func (s *Scenario) check() error {
	switch {
	case !scenarioName.MatchString(s.Name):
		return fmt.Errorf("name: %q has to match %s", s.Name, scenarioName)
	case !strings.HasPrefix(s.Path, "/") || strings.ContainsFunc(s.Path, notPrintable):
		return fmt.Errorf("path: %q has to begin with a slash and hold no spaces", s.Path)
	case len(s.Route) == 0:
		return errors.New("route: is missing")
	case s.Route["upstream"] != nil:
		return errors.New("route: upstream is filled in by the run, which brings its own")
	}
	if s.Title == "" {
		s.Title = s.Name
	}
	if _, err := s.RouteBody(nil); err != nil {
		return err
	}
	return nil
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
