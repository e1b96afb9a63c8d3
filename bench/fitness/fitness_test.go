package fitness

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden file")

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
		a, err := txtar.ParseFile(filepath.Join("testdata", archive+".txtar"))
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
	m, _ := machine.Detect(s.before, nil)
	if s.given.PageSize != 0 {
		m.PageSize = s.given.PageSize
	}
	allowed, err := process.AllowedCPUs(s.before)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Workers: 1, Connections: s.given.Connections, Ports: []int{1980, 2379, 9080, 9180}}
	if plan.Pins, err = PlanPins(machine.LogicalCPUs(s.before, allowed), plan.Workers, s.given.Pin); err != nil {
		t.Fatal(err)
	}
	opts := SnapshotOptions{Pids: []int{50}}
	if s.given.FreeDisk != nil {
		opts.FreeDisk = func() (uint64, error) { return *s.given.FreeDisk, nil }
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
	cases, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
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
	got, err := json.MarshalIndent(texts, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "findings.golden.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
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
	b, err := os.ReadFile(filepath.Join("testdata", "findings.golden.json"))
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
	m := machine.Machine{CPU: machine.CPU{Core: "Neoverse N1"}}
	if got := Check(m, empty, Plan{Workers: 1, Connections: 16}); len(got) != 0 {
		t.Errorf("Check = %+v", got)
	}
	if got := Moved(empty, empty); len(got) != 0 {
		t.Errorf("Moved = %+v", got)
	}
}

// TestUnchecked takes away what each check needs; nothing else may be missing.
func TestUnchecked(t *testing.T) {
	t.Parallel()
	scene := readScene(t, "base")
	opts := SnapshotOptions{
		Pids:       []int{50},
		FreeDisk:   func() (uint64, error) { return 1 << 40, nil },
		MeasureMHz: func() float64 { return 3000 },
	}
	unchecked := func(tree fstest.MapFS) map[string]string {
		_, evidence := machine.Detect(tree, nil)
		codes := map[string]string{}
		for _, u := range UncheckedOf(evidence, TakeSnapshot(tree, opts)) {
			codes[u.Code] = u.Why
		}
		return codes
	}
	// What the calm machine lacks itself.
	always := unchecked(scene.before)
	for prefix, codes := range map[string][]string{
		"proc/uptime":               {OtherLoad, Throttled},
		"proc/stat":                 {ClockStep, Steal, OtherLoad},
		"proc/vmstat":               {Swapping},
		"proc/meminfo":              {LowMemory},
		"proc/self/limits":          {FewOpenFiles},
		"proc/sys/net/core/":        {ShortBacklog},
		"proc/sys/net/ipv4/":        {PortRange, TimeWait},
		"proc/net/sockstat":         {TimeWait},
		"sys/devices/system/cpu/on": {},
	} {
		tree := fstest.MapFS{}
		for name, file := range scene.before {
			if !strings.HasPrefix(name, prefix) {
				tree[name] = file
			}
		}
		if len(tree) == len(scene.before) {
			t.Errorf("the calm machine has no %s", prefix)
		}
		got := unchecked(tree)
		for code := range always {
			delete(got, code)
		}
		for _, code := range codes {
			if got[code] == "" && always[code] == "" {
				t.Errorf("without %s, %s is not among the unchecked", prefix, code)
			}
			delete(got, code)
		}
		if len(got) > 0 {
			t.Errorf("without %s, also unchecked: %v", prefix, got)
		}
	}
}

// TestPinnedOnTwoCores has one CPU left for everything but the gateway.
func TestPinnedOnTwoCores(t *testing.T) {
	t.Parallel()
	pins, err := PlanPins([]machine.LogicalCPU{{ID: 0}, {ID: 1}}, 1, "1")
	if err != nil {
		t.Fatal(err)
	}
	f := checkCores(2, Plan{Workers: 1, Pins: pins})
	if f == nil || f.Code != SharedCores {
		t.Errorf("found %+v, want %s", f, SharedCores)
	}
}

func TestReadCPUTimes(t *testing.T) {
	t.Parallel()
	before := CPUTimes{Busy: 2500 * time.Millisecond, IRQ: 400 * time.Millisecond, Idle: 5 * time.Second, Steal: 300 * time.Millisecond}
	got, err := ReadCPUTimes(fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte("cpu  100 50 60 400 100 10 30 30 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")}})
	if err != nil || got != before {
		t.Errorf("ReadCPUTimes = %+v, %v, want %+v", got, err, before)
	}
	after := CPUTimes{Busy: 3 * time.Second, IRQ: 400 * time.Millisecond, Idle: 4 * time.Second, Steal: time.Second}
	want := CPUTimes{Busy: 500 * time.Millisecond, Steal: 700 * time.Millisecond}
	if got := after.Sub(before); got != want {
		t.Errorf("Sub = %+v, want %+v", got, want)
	}
	stat := fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte("cpu 9 9 9 9 9 9 9 9\ncpu0 1 0 0 2 0 0 3 4 0 0\ncpu1 5 0 0 0 0 0 0 0 0 0\ncpu10 6 0 0 0 0 0 0 1 0 0\n")}}
	want = CPUTimes{Busy: 100 * time.Millisecond, IRQ: 30 * time.Millisecond, Idle: 20 * time.Millisecond, Steal: 50 * time.Millisecond}
	if got, err := ReadCPUTimesOf(stat, []int{0, 10}); err != nil || got != want {
		t.Errorf("ReadCPUTimesOf = %+v, %v, want %+v", got, err, want)
	}
	for _, cpus := range [][]int{nil, {0, 2}} {
		if got, err := ReadCPUTimesOf(stat, cpus); err == nil {
			t.Errorf("ReadCPUTimesOf CPUs %v = %+v, want an error", cpus, got)
		}
	}
	for _, bad := range []string{"", "intr 1\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"} {
		if got, err := ReadCPUTimes(fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte(bad)}}); err == nil {
			t.Errorf("ReadCPUTimes of %q = %+v, want an error", bad, got)
		}
	}
}
