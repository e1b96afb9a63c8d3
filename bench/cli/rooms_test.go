package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages and what of armrepro each may import, itself or through
// another. A package below one of these is part of it.
var rooms = map[string][]string{
	"embed":              {"proxycheck/process"},
	"upstream":           {},
	"assets":             {},
	"proxycheck/process": {},
	"proxycheck":         {"assets", "proxycheck/process"},
	"bench/load":         {"upstream"},
	"bench/machine":      {"proxycheck/process"},
	"bench/fitness":      {"bench/machine", "proxycheck/process"},
	"bench/statistics":   {},
	"bench/wrk":          {"bench/load", "upstream", "proxycheck/process"},
	"bench/nginx":        {"upstream", "proxycheck/process"},
	"bench":              {"bench/load", "bench/machine", "bench/fitness", "bench/statistics", "proxycheck/process", "upstream"},
	"bench/report":       {"bench", "bench/load", "bench/machine", "bench/fitness", "bench/statistics", "proxycheck/process", "upstream", "assets"},
	"bench/experiment": {
		"bench", "bench/load", "bench/machine", "bench/fitness", "bench/statistics", "bench/wrk", "bench/nginx",
		"proxycheck", "proxycheck/process",
		"upstream", "embed", "assets",
	},
	"bench/cli": nil, // knows them all
}

// tools are packages that only tests and make use. They are free.
var tools = []string{"bench/peers", "bench/machine/vmtest", "proxycheck/apisixtest"}

// TestImports holds the directions in which packages may know each other.
func TestImports(t *testing.T) {
	t.Parallel()
	const module = "armrepro/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}: {{join .Deps \" \"}}", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, deps, _ := strings.Cut(strings.TrimSpace(line), ": ")
		path = strings.TrimPrefix(path, module)
		from := room(path)
		allowed, known := rooms[from]
		if !known || allowed == nil {
			continue
		}
		for dep := range strings.FieldsSeq(deps) {
			dep, own := strings.CutPrefix(dep, module)
			if to := room(dep); own && to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s, if only through another", path, dep)
			}
		}
	}
}

// room is the longest of rooms that path lies in, or path.
func room(path string) string {
	for at := path; at != ""; {
		if _, ok := rooms[at]; ok && !slices.Contains(tools, path) {
			return at
		}
		i := strings.LastIndex(at, "/")
		at = at[:max(i, 0)]
	}
	return path
}
