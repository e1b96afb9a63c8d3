package machine

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"armrepro/proxycheck/process"
)

// seed adds a file of every recorded machine that has it.
func seed(f *testing.F, name string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "machines", "*", filepath.FromSlash(name)))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{})
}

// fit fails unless s may go to a terminal and into JSON.
func fit(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q is not fit to print", s)
	}
}

func FuzzCPUInfo(f *testing.F) {
	seed(f, "proc/cpuinfo")
	f.Add([]byte("Processor\t: AArch64 Processor rev 4 (aarch64)\nprocessor\t: 0\nprocessor\t: 1\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n"))
	f.Add([]byte("processor: 8191\nbogomips: 1e400\nBogoMIPS: NaN\nCPU part: 0x1000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		processors, err := readCPUInfo(fstest.MapFS{"proc/cpuinfo": {Data: b}})
		if (err == nil) != (len(processors) > 0) {
			t.Fatalf("%d processors with error %v", len(processors), err)
		}
		for _, p := range processors {
			if p.id < 0 || p.id >= process.MaxCPUs || math.IsNaN(p.bogoMIPS) || math.IsInf(p.bogoMIPS, 0) {
				t.Errorf("%+v", p)
			}
			fit(t, p.model)
			fit(t, p.vendor)
		}
	})
}

func FuzzMIDR(f *testing.F) {
	for _, s := range []string{"0x00000000413fd0c1", "0x", "413fd0c1", "0xffffffffffffffff", "0x1ffffffffffffffff", "-0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := readRegister(fstest.MapFS{register: {Data: []byte(s)}}, register)
		if err != nil {
			return
		}
		f := m.fields()
		block := cpuBlock{"CPU implementer": f.Implementer, "CPU variant": f.Variant, "CPU part": f.Part, "CPU revision": f.Revision}
		if got := block.midr(); got == nil || *got != m {
			t.Errorf("%s as /proc/cpuinfo has it reads %v, want %v", s, got, m)
		}
	})
}

func FuzzSMBIOS(f *testing.F) {
	seed(f, smbiosTable)
	f.Add([]byte{4, 0x1a, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 'a', 0, 'b', 0, 0})
	f.Add([]byte{4, 4, 0, 0, 0, 0})
	f.Add([]byte{0, 3, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		processors, err := readSMBIOS(fstest.MapFS{smbiosTable: {Data: b}})
		if err == nil && len(processors) == 0 || len(processors) > maxSockets {
			t.Errorf("%d processors, %v", len(processors), err)
		}
		for _, p := range processors {
			fit(t, p.manufacturer)
			fit(t, p.version)
		}
	})
}

func FuzzCgroup(f *testing.F) {
	f.Add("0::/a/b\n", "30 24 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n")
	f.Add("4:cpu,cpuacct:/a\n0::/\n", "30 24 0:26 /a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n")
	f.Add("0::/../../etc\n", "30 24 0:26 /x\\040y /.. rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, group, mounts string) {
		root := fstest.MapFS{
			"proc/self/cgroup":    {Data: []byte(group)},
			"proc/self/mountinfo": {Data: []byte(mounts)},
		}
		g, err := GroupOf(root, "self", "cpu")
		if err != nil {
			return
		}
		if strings.Contains("/"+g.dir+"/", "/../") && !strings.HasPrefix(g.mount, "..") {
			t.Errorf("group %+v leads out of its mount", g)
		}
		if q, _, err := g.quota(root); err == nil && !(q > 0) {
			t.Errorf("quota %v", q)
		}
	})
}

func FuzzAuxv(f *testing.F) {
	seed(f, "proc/self/auxv")
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := readAuxv(fstest.MapFS{"proc/self/auxv": {Data: b}})
		if err != nil {
			return
		}
		d := &detector{auxv: v}
		if size, _, err := d.pageSize(); err == nil && (size < 4096 || size > 65536) {
			t.Errorf("page size %d", size)
		}
		v.features()
	})
}

func FuzzCloudInit(f *testing.F) {
	seed(f, cloudInitData)
	f.Add([]byte(`{"ds":{"meta-data":{"instance-type":"c6g.large"}}}`))
	f.Add([]byte(`{"ds":{"shape":3}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, _, err := cloudInitInstance(fstest.MapFS{cloudInitData: {Data: b}})
		fit(t, name)
		if (err == nil) != (name != "") {
			t.Errorf("%q, %v", name, err)
		}
	})
}

// FuzzDetect puts any bytes in the place of any file.
func FuzzDetect(f *testing.F) {
	names := []string{
		"proc/cpuinfo", "proc/meminfo", "proc/version", "proc/self/status", "proc/self/cgroup", "proc/self/mountinfo",
		"proc/self/auxv", "proc/sys/kernel/osrelease", "proc/sys/kernel/arch", "etc/os-release", cloudInitData, smbiosTable,
		"sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name", "sys/class/dmi/id/product_family",
		"sys/devices/system/cpu/online", "sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
		"sys/devices/system/cpu/cpu0/cache/index0/size", "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
		"sys/devices/system/cpu/vulnerabilities/x", "sys/firmware/devicetree/base/compatible", "run/systemd/container",
	}
	for i := range names {
		f.Add(i, []byte("0-3\n"), i+1, []byte("processor: 0\nCPU implementer: 0x41\nCPU part: 0xd0c\nCPU variant: 3\nCPU revision: 1\n"))
	}
	f.Fuzz(func(t *testing.T, i int, a []byte, j int, b []byte) {
		n := len(names)
		root := fstest.MapFS{names[((i%n)+n)%n]: {Data: a}, names[((j%n)+n)%n]: {Data: b}}
		m, evidence := Detect(root, &Live{Arch: "arm64", PageSize: 4096})
		texts := []string{
			m.CPU.Vendor, m.CPU.Core, m.CPU.Product, m.Cloud, m.Instance, m.Arch, m.Kernel, m.OS, m.Hypervisor, m.Container, m.EmulatedWhy,
		}
		for _, c := range m.CPU.Caches {
			texts = append(texts, c.Type)
		}
		for name, state := range m.Mitigations {
			texts = append(texts, name, state)
		}
		for _, e := range evidence {
			texts = append(texts, e.Value+e.Why)
		}
		// A list of CPUs that is all gaps is the longest.
		const most = 64 << 10
		for _, s := range texts {
			fit(t, s)
			if len(s) > most {
				t.Errorf("%d bytes: %.100s", len(s), s)
			}
		}
	})
}

// FuzzFrequency reads frequencies from a model's name and from the device tree.
func FuzzFrequency(f *testing.F) {
	f.Add("Intel(R) Xeon(R) CPU @ 2.80GHz", []byte{0, 0, 0, 1})
	f.Add("@ NaNGHz", []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, model string, b []byte) {
		root := fstest.MapFS{"sys/firmware/devicetree/base/cpus/cpu@0/clock-frequency": {Data: b}}
		d := &detector{root: root, first: processor{model: model}}
		if mhz, by, err := d.claimedMHz(0); (err == nil) != sensibleMHz(mhz) || (err == nil) != (by != "") {
			t.Errorf("%v MHz by %q, %v", mhz, by, err)
		}
	})
}
