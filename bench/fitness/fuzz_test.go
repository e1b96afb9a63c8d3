package fitness

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// FuzzSnapshot puts any bytes in the place of any file that a snapshot is made
// of, in the second of two, and looks for findings.
func FuzzSnapshot(f *testing.F) {
	names := []string{
		"proc/uptime", "proc/stat", "proc/vmstat", "proc/meminfo", "proc/self/limits", "proc/self/status", "proc/self/cgroup",
		"proc/self/mountinfo", "proc/50/stat", "proc/sys/net/core/somaxconn", "proc/sys/net/ipv4/ip_local_port_range",
		"proc/sys/net/ipv4/ip_local_reserved_ports", "proc/net/sockstat",
		process.CPUPath(0, "cpufreq/scaling_governor"), process.CPUPath(0, "cpufreq/scaling_max_freq"), process.CPUPath(0, "cpufreq/cpuinfo_max_freq"),
		process.CPUPath(0, "thermal_throttle/core_throttle_count"), process.CPUDir + "/intel_pstate/no_turbo", process.CPUDir + "/cpufreq/boost",
		"sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat",
	}
	for i := range names {
		f.Add(i, []byte("1 2\n"), i+1, []byte("max 100000\n"))
		f.Add(i, []byte("cpu  1 2 3\nTCP: tw 99999999999999999999\nMemAvailable: -1 kB\nMax open files unlimited\n"), 7, []byte("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
	}
	before := fstest.MapFS{}
	for _, name := range names {
		before[name] = &fstest.MapFile{Data: []byte("1\n")}
	}
	f.Fuzz(func(t *testing.T, i int, a []byte, j int, b []byte) {
		n := len(names)
		after := fstest.MapFS{names[((i%n)+n)%n]: {Data: a}, names[((j%n)+n)%n]: {Data: b}}
		for name, file := range before {
			if after[name] == nil {
				after[name] = file
			}
		}
		m, evidence := machine.Detect(after, nil)
		opts := SnapshotOptions{Pids: []int{50}}
		first, last := TakeSnapshot(before, opts), TakeSnapshot(after, opts)
		plan := Plan{Workers: 1, Connections: 16, Ports: []int{1980, 40000}}
		for _, found := range append(Check(m, last, plan), Moved(first, last)...) {
			fit(t, found.Text)
			const most = 1000
			if len(found.Text) > most || found.Hint == "" {
				t.Errorf("%+v", found)
			}
		}
		for _, u := range UncheckedOf(evidence, last) {
			fit(t, u.Why)
		}
	})
}

func FuzzThrottled(f *testing.F) {
	for _, s := range []string{"throttled_usec 45\n", "nr_periods 1\nthrottled_time 7000\n", "throttled_usec 9223372036854775807\n", "throttled_usec -1\n", "throttled_time"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := throttled(fstest.MapFS{"cpu.stat": {Data: b}}, "cpu.stat", bytes.Contains(b, []byte("usec")))
		if d < 0 || err != nil && d != 0 {
			t.Errorf("%v, %v", d, err)
		}
	})
}

func FuzzCPUTimes(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nbtime 1\n"))
	f.Add([]byte("cpu 9223372036854775807 1 1 1 1 1 1 1 1 1\n"))
	f.Add([]byte("cpu 1 2 3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c CPUTimes
		if err := c.add(b, "cpu"); c.Busy < 0 || c.Idle < 0 || c.Steal < 0 || c.Total() < 0 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// fit fails unless s may go to a terminal and into JSON.
func fit(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q is not fit to print", s)
	}
}
