package machine

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"armrepro/proxycheck/process"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// given is what a case has beside its files.
type given struct {
	Connections int       `json:"connections"`
	Pin         string    `json:"pin"`
	FreeDisk    *uint64   `json:"free_disk"`
	MHz         []float64 `json:"mhz"`
	PageSize    int       `json:"page_size"`
	// Also lists findings that the case cannot avoid.
	Also []string `json:"also"`
}

// scene is a machine at two moments, and what is run on it meanwhile.
type scene struct {
	before, after fstest.MapFS
	given         given
}

// readScene lays the files of a case over those of the calm machine.
func readScene(t *testing.T, name string) scene {
	t.Helper()
	s := scene{before: fstest.MapFS{}, given: given{Connections: 16, Pin: PinAuto}}
	after := fstest.MapFS{}
	for _, archive := range slices.Compact([]string{"base", name}) {
		a, err := txtar.ParseFile(filepath.Join("testdata", "fitness", archive+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name == "given.json" {
				if err := json.Unmarshal(f.Data, &s.given); err != nil {
					t.Fatal(err)
				}
			} else if late, ok := strings.CutPrefix(f.Name, "after/"); ok {
				after[late] = &fstest.MapFile{Data: f.Data}
			} else {
				s.before[f.Name] = &fstest.MapFile{Data: f.Data}
			}
		}
	}
	s.after = maps.Clone(s.before)
	maps.Copy(s.after, after)
	return s
}

// findings runs all checks on a scene.
func (s scene) findings(t *testing.T) []Finding {
	t.Helper()
	m, _ := Detect(s.before, Options{})
	if s.given.PageSize != 0 {
		m.PageSize = s.given.PageSize
	}
	allowed, err := process.AllowedCPUs(s.before)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Workers: 1, Connections: s.given.Connections, Ports: []int{1980, 2379, 9080, 9180}}
	if plan.Pins, err = PlanPins(LogicalCPUs(s.before, allowed), plan.Workers, s.given.Pin); err != nil {
		t.Fatal(err)
	}
	opts := SnapshotOptions{Pids: []int{50}, DataDir: "/tmp"}
	if s.given.FreeDisk != nil {
		opts.FreeDisk = func(string) (uint64, error) { return *s.given.FreeDisk, nil }
	}
	mhz := slices.Clone(s.given.MHz)
	if mhz != nil {
		opts.MeasureMHz = func() float64 {
			next := mhz[0]
			mhz = mhz[1:]
			return next
		}
	}
	before, after := TakeSnapshot(s.before, opts), TakeSnapshot(s.after, opts)
	return append(Check(m, before, plan), Moved(before, after)...)
}

// TestFindings provokes each finding by the case of its name, or one whose name
// begins with it, and no other finding.
func TestFindings(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob(filepath.Join("testdata", "fitness", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	provoked := map[string]bool{}
	texts := map[string][]Finding{}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		s := readScene(t, name)
		found := s.findings(t)
		texts[name] = found
		var codes []string
		for _, f := range found {
			codes = append(codes, f.Code)
			provoked[f.Code] = true
		}
		want := slices.Clone(s.given.Also)
		if name != "base" {
			want = append(want, longestCode(name))
		}
		slices.Sort(want)
		slices.Sort(codes)
		if diff := cmp.Diff(want, codes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, code := range FindingCodes() {
		if !provoked[code] {
			t.Errorf("no case provokes %s", code)
		}
	}
	golden(t, filepath.Join("testdata", "fitness", "findings.golden.json"), texts)
}

// longestCode is the code that a case is named after.
func longestCode(name string) string {
	var best string
	for _, code := range FindingCodes() {
		if strings.HasPrefix(name, code) && len(code) > len(best) {
			best = code
		}
	}
	return best
}

func TestEveryFindingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("testdata", "fitness", "findings.golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string][]Finding
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	for name, findings := range texts {
		for _, f := range findings {
			if f.Text == "" || f.Hint == "" || strings.Contains(f.Text+f.Hint, "%!") {
				t.Errorf("%s: %+v", name, f)
			}
			if f.Invalid != (f.Code == EmulatedCPU) {
				t.Errorf("%s: invalid is %t", f.Code, f.Invalid)
			}
		}
	}
}

// Nothing that can be read is no finding: unknown is not bad.
func TestNoFindingsWithoutFacts(t *testing.T) {
	t.Parallel()
	empty := TakeSnapshot(fstest.MapFS{}, SnapshotOptions{Pids: []int{1}})
	m := Machine{CPU: CPU{Core: "Neoverse N1"}}
	if got := Check(m, empty, Plan{Workers: 1, Connections: 16}); len(got) != 0 {
		t.Errorf("Check = %+v", got)
	}
	if got := Moved(empty, empty); len(got) != 0 {
		t.Errorf("Moved = %+v", got)
	}
}
