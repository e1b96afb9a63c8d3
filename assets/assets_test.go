package assets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(scenarios, "scenarios/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(ScenarioNames()) {
		t.Errorf("%d files, %d names", len(files), len(ScenarioNames()))
	}
	for _, name := range ScenarioNames() {
		data, err := Scenario(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var doc struct {
			Name  string
			Route struct{ Plugins map[string]map[string]any }
		}
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if doc.Name != name {
			t.Errorf("%s.yaml is named %q", name, doc.Name)
		}
		limit := doc.Route.Plugins["limit-count"]
		if (name == "two-plugins") != (limit["count"] == 2000000000000) {
			t.Errorf("%s: limit-count is %v", name, limit)
		}
	}
	for _, name := range []string{"", "nosuch", "../reference-results", "/etc/passwd"} {
		if _, err := Scenario(name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("scenario %q: %v", name, err)
		}
	}
}

// TestTables checks that every published figure and price is a figure and has
// a standing.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		data    []byte
		figures []string
		// date is the column of the date, which may be cut short.
		date string
	}{
		{"reference-results.csv", ReferenceResults(), []string{"qps"}, "published"},
		{"prices.csv", Prices(), []string{"vcpu", "memory_gb", "usd_per_hour"}, "asof"},
	} {
		records, err := csv.NewReader(bytes.NewReader(tt.data)).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		header := records[0]
		if len(records) < 2 {
			t.Errorf("%s: no records", tt.name)
		}
		for i, rec := range records[1:] {
			get := func(column string) string { return rec[slices.Index(header, column)] }
			for _, column := range tt.figures {
				if v, err := strconv.ParseFloat(get(column), 64); err != nil || v <= 0 {
					t.Errorf("%s, record %d: %s = %q", tt.name, i+1, column, get(column))
				}
			}
			if get("standing") == "" {
				t.Errorf("%s, record %d: no standing", tt.name, i+1)
			}
			if get("standing") == "published" && get("source") == "" {
				t.Errorf("%s, record %d: published without a source", tt.name, i+1)
			}
			if date := get(tt.date); date != "" {
				if _, err := time.Parse("2006-01-02"[:len(date)], date); err != nil {
					t.Errorf("%s, record %d: %v", tt.name, i+1, err)
				}
			}
		}
	}
}

// TestAccessorsCopy keeps a reader from changing what the next one gets.
func TestAccessorsCopy(t *testing.T) {
	t.Parallel()
	for name, get := range map[string]func() []byte{
		"schema": ResultSchema, "references": ReferenceResults, "prices": Prices,
	} {
		first := string(get())
		clear(get())
		if first == "" || first != string(get()) {
			t.Errorf("%s: changed", name)
		}
	}
}
