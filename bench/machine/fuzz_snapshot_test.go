package machine

import (
	"testing"
	"testing/fstest"
)

// FuzzSnapshot puts any bytes in the place of any file that a snapshot is made
// of, in the second of two, and looks for findings.
func FuzzSnapshot(f *testing.F) {
	names := []string{
		"proc/uptime", "proc/stat", "proc/vmstat", "proc/meminfo", "proc/self/limits", "proc/self/status", "proc/self/cgroup",
		"proc/self/mountinfo", "proc/50/stat", "proc/sys/net/core/somaxconn", "proc/sys/net/ipv4/ip_local_port_range",
		"proc/sys/net/ipv4/ip_local_reserved_ports", "proc/net/sockstat",
		cpuPath(0, "cpufreq/scaling_governor"), cpuPath(0, "cpufreq/scaling_max_freq"), cpuPath(0, "cpufreq/cpuinfo_max_freq"),
		cpuPath(0, "thermal_throttle/core_throttle_count"), cpuDir + "/intel_pstate/no_turbo", cpuDir + "/cpufreq/boost",
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
		m, evidence := Detect(after, Options{})
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

// FuzzFrequency reads frequencies from a model's name and from the device tree.
func FuzzFrequency(f *testing.F) {
	f.Add("Intel(R) Xeon(R) CPU @ 2.80GHz", []byte{0, 0, 0, 1})
	f.Add("@ NaNGHz", []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, model string, b []byte) {
		root := fstest.MapFS{"sys/firmware/devicetree/base/cpus/cpu@0/clock-frequency": {Data: b}}
		tree, _ := deviceTreeMHz(root)
		for _, mhz := range []float64{modelMHz(model), tree} {
			if mhz != 0 && !sensibleMHz(mhz) {
				t.Errorf("%v MHz", mhz)
			}
		}
	})
}
