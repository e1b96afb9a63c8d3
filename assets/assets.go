// Package assets holds the files that are part of the binary. It hands them
// out as bytes; what they mean is the business of the packages that read them.
package assets

import (
	"embed"
	"slices"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

//go:embed armrepro-v1.schema.json
var resultSchema []byte

//go:embed emptyproxy.conf
var emptyProxy []byte

//go:embed reference-results.csv
var referenceResults []byte

//go:embed prices.csv
var prices []byte

// ScenarioNames lists the built-in scenarios in the order in which Apache
// APISIX's benchmark/run.sh runs them.
func ScenarioNames() []string {
	return []string{"single-upstream", "two-plugins"}
}

// Scenario returns the YAML of the built-in scenario name, or an error that
// wraps fs.ErrNotExist or fs.ErrInvalid.
func Scenario(name string) ([]byte, error) {
	return scenarios.ReadFile("scenarios/" + name + ".yaml")
}

// EmptyProxy returns a template (text/template) for the nginx.conf of a proxy that
// does nothing but pass requests on.
func EmptyProxy() []byte { return slices.Clone(emptyProxy) }

// ResultSchema returns the JSON Schema (draft 2020-12) of a saved result.
func ResultSchema() []byte { return slices.Clone(resultSchema) }

// ReferenceResults returns the published figures that a result can be set
// beside, as CSV with a header. Its columns source, published, standing and
// note say where each figure comes from and how far it can be trusted.
func ReferenceResults() []byte { return slices.Clone(referenceResults) }

// Prices returns instance prices in US dollars per hour, as CSV with a header
// and the same columns of provenance.
func Prices() []byte { return slices.Clone(prices) }
