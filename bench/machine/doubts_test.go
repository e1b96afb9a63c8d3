package machine

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"armrepro/proxycheck/process"
)

// arm is a machine of n cores with this MIDR and BogoMIPS in /proc/cpuinfo.
func arm(n int, implementer, part, variant, revision, bogoMIPS string) fstest.MapFS {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "processor\t: %d\n", i)
		if bogoMIPS != "" {
			fmt.Fprintf(&b, "BogoMIPS\t: %s\n", bogoMIPS)
		}
		fmt.Fprintf(&b, "Features\t: fp asimd\nCPU implementer\t: %s\nCPU architecture: 8\nCPU variant\t: %s\nCPU part\t: %s\nCPU revision\t: %s\n\n",
			implementer, variant, part, revision)
	}
	return fstest.MapFS{"proc/cpuinfo": &fstest.MapFile{Data: []byte(b.String())}}
}

// with lays files over a tree: names and contents in turn.
func with(tree fstest.MapFS, files ...string) fstest.MapFS {
	for i := 0; i < len(files); i += 2 {
		tree[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return tree
}

// smbiosNaming is a table whose only structure is a processor of this version.
func smbiosNaming(version string) string {
	const length = 0x30
	formatted := make([]byte, length)
	formatted[0], formatted[1], formatted[0x10] = 4, length, 1
	return string(formatted) + version + "\x00\x00"
}

// aws is a DMI of AWS.
func aws(tree fstest.MapFS, product string) fstest.MapFS {
	return with(tree, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n", "sys/class/dmi/id/product_name", product+"\n")
}

// named adds a model name to each processor in /proc/cpuinfo.
func named(tree fstest.MapFS, model string) fstest.MapFS {
	info := string(tree["proc/cpuinfo"].Data)
	return with(tree, "proc/cpuinfo", strings.ReplaceAll(info, "Features", "model name\t: "+model+"\nFeatures"))
}

func n1(bogoMIPS string) fstest.MapFS { return arm(2, "0x41", "0xd0c", "0x3", "1", bogoMIPS) }

// TestDoubts is about machines that leave open which one they are: what they may
// be is no more than a reason.
func TestDoubts(t *testing.T) {
	t.Parallel()
	midr := func(id int) string { return process.CPUPath(id, register) }
	online := process.CPUDir + "/online"
	for name, tt := range map[string]struct {
		tree fstest.MapFS
		// field is of the evidence; value and why are what it has to say.
		field, value, why string
	}{
		"N2 in an unknown cloud": {
			arm(2, "0x41", "0xd49", "0x0", "0", "2000.00"), "cpu.product", "", "may be Azure Cobalt 100, but the cloud is unknown",
		},
		"N2 with a timer that several have": {
			arm(2, "0x41", "0xd49", "0x0", "0", "100.00"), "cpu.product", "", "may be Alibaba Yitian 710, but the cloud is unknown",
		},
		"V3 in an unknown cloud": {
			arm(2, "0x41", "0xd84", "0x0", "1", "2000.00"), "cpu.product", "", "may be Graviton5",
		},
		"a timer of its own": {n1("243.75"), "cpu.product", "Graviton2", "fits this one only"},
		"Altra's timer on AWS": {
			aws(n1("50.00"), "c6g.large"), "cpu.product", "", "fits no product in the table",
		},
		"a MIDR of zeros": {arm(1, "0x00", "0x000", "0x0", "0", ""), "cpu.product", "", "fits no product"},
		"a serial number for a processor": {
			with(arm(2, "0x41", "0xd8e", "0x0", "0", "2000.00"), smbiosTable, smbiosNaming("Serial 12345-ABC")), "cpu.product", "", "fits no product",
		},
		"an instance id for a machine type": {
			aws(n1("243.75"), "i-0123456789abcdef0"), "instance", "", "DMI does not tell it",
		},
		"an id in cloud-init's data": {
			with(n1("50.00"), cloudInitData, `{"ds":{"shape":"ocid1.instance.oc1.phx.abc"}}`), "instance", "", "is like a serial number or an id, and not shown",
		},
		"a system's name without end": {
			with(n1("50.00"), "etc/os-release", "PRETTY_NAME="+strings.Repeat("x", 1000)), "os", "", "is longer than a name",
		},
		"a damaged register in sysfs": {
			with(n1("50.00"), online, "0-1", midr(0), "bad"), "cpu.core", "Neoverse N1", "from proc/cpuinfo; " + midr(0) + `: parse midr_el1 "bad"`,
		},
		"a register of one of two in sysfs": {
			with(n1("50.00"), online, "0-2", midr(0), "0x00000000413fd0c1"), "cpu.core", "Neoverse N1", "is not there; CPUs 2 could not be identified",
		},
		"sysfs and cpuinfo at odds": {
			with(n1("50.00"), online, "0-1", midr(0), "0x00000000411fd401", midr(1), "0x00000000411fd401"), "cpu.core", "Neoverse V1", "proc/cpuinfo says otherwise of CPUs 0-1",
		},
		"firmware and timer at odds": {
			with(aws(n1("243.75"), "c6g.large"), smbiosTable, smbiosNaming("Ampere(R) Altra(R) Max Processor")), "cpu.product",
			"Ampere Altra Max or Graviton2", `says "Altra Max", but r3p1 with BogoMIPS 243.75 on AWS fits Graviton2`,
		},
		"two sockets at odds": {
			with(n1("50.00"), smbiosTable, smbiosNaming("Ampere Altra")+smbiosNaming("Ampere Altra Max")), "cpu.product",
			"Ampere Altra or Altra Max", `says "Altra", SMBIOS processor version says "Altra Max"`,
		},
		"an empty socket before the other": {
			with(n1("50.00"), smbiosTable, smbiosNaming("Not Specified")+smbiosNaming("Ampere Altra Max")), "cpu.product", "Ampere Altra Max", "SMBIOS",
		},
		"a chip that calls itself by a number": {
			with(arm(2, "0x41", "0xd8e", "0x0", "0", "2000.00"), smbiosTable, smbiosNaming("K3X9Q77Z1")), "cpu.product", "", "fits no product",
		},
		"a serial number beside the name": {
			with(n1("50.00"), smbiosTable, smbiosNaming("Altra SN:ABCD-99881")), "cpu.product", "Ampere Altra or Altra Max", "fits them alike",
		},
		"a line of chips that share a part": {
			with(arm(2, "0x48", "0xd03", "0x0", "0", "200.00"), smbiosTable, smbiosNaming("HUAWEI Kunpeng 950")), "cpu.product", "Kunpeng 950", `says "Kunpeng 950"`,
		},
		"a line of chips with a serial number": {
			with(arm(2, "0x48", "0xd22", "0x0", "0", "200.00"), smbiosTable, smbiosNaming("Kunpeng 920 2102351QRN10K8000042")), "cpu.product", "Kunpeng 920", `says "Kunpeng"`,
		},
		"a line of chips that the firmware does not name": {
			arm(2, "0x48", "0xd06", "0x0", "0", "200.00"), "cpu.product", "Kunpeng 950", "fits this one only",
		},
		"a model name of a known chip": {
			named(n1("50.00"), "Ampere(R) Altra(R) Max Processor"), "cpu.product", "Ampere Altra Max", `model name in proc/cpuinfo says "Altra Max"`,
		},
		"a model name of a new chip": {
			named(arm(2, "0x70", "0x862", "0x1", "3", "100.00"), "Phytium,D2000/8 E8C"), "cpu.product", "Phytium,D2000/8 E8C", "model name in proc/cpuinfo",
		},
		"a model name that names no chip": {
			named(arm(2, "0x41", "0xd8e", "0x0", "0", "2000.00"), "ARMv8 Processor rev 0 (v8l)"), "cpu.product", "", "fits no product",
		},
		"a core that no table has": {
			with(with(arm(1, "0x51", "0x999", "0x0", "0", ""), online, "0-1", midr(0), "0x00000000510f9990", midr(1), "0x00000000990f1110")), "cpu.kinds",
			"Qualcomm 0x51/0x999 on CPUs 0, 0x99/0x111 on CPUs 1", "the most numerous first",
		},
		"Apple's M4":               {arm(2, "0x61", "0x053", "0x1", "0", "2000.00"), "cpu.product", "Apple M4", "fits this one only"},
		"part 0 without a timer":   {arm(2, "0x41", "0x000", "0x0", "0", ""), "cpu.product", "", "fits no product"},
		"WSL1 on Arm":              {with(n1("50.00"), osRelease, "4.4.0-22621-Microsoft\n"), "cpu.core", "", "made up"},
		"WSL1's name":              {with(n1("50.00"), osRelease, "4.4.0-22621-Microsoft\n"), "container", "WSL1", "osrelease"},
		"WSL2":                     {with(n1("50.00"), osRelease, "5.15.167.4-microsoft-standard-WSL2\n"), "container", "WSL2", "osrelease"},
		"WSL2's core":              {with(n1("50.00"), osRelease, "6.6.87-microsoft-standard-WSL2+\n"), "cpu.core", "Neoverse N1", "proc/cpuinfo"},
		"WSL2's hypervisor":        {with(n1("50.00"), osRelease, "5.15.167.4-microsoft-standard-WSL2\n"), "hypervisor", "Hyper-V", "WSL2"},
		"Azure's kernel is no WSL": {with(n1("50.00"), osRelease, "6.8.0-1021-azure\n"), "container", "", "is not there"},
		"a chip of another core": {
			with(n1("51.00"), smbiosTable, smbiosNaming("AWS Graviton3")), "cpu.product", "", "fits no product",
		},
		"a chip of another architecture": {
			with(n1("51.00"), smbiosTable, smbiosNaming("Intel(R) Xeon(R) Gold 6148")), "cpu.product", "", "fits no product",
		},
		"a filler": {with(n1("51.00"), smbiosTable, smbiosNaming("Undefined")), "cpu.product", "", "fits no product"},
		"a serial number beside a known name": {
			with(n1("243.75"), smbiosTable, smbiosNaming("Graviton2 MXQ12345XY")), "cpu.product", "Graviton2", `says "Graviton2"`,
		},
		"a serial number beside a new name": {
			with(n1("51.00"), smbiosTable, smbiosNaming("Graviton77 MXQ12345XY")), "cpu.product", "", "fits no product",
		},
		"an id beside the machine type": {
			aws(n1("243.75"), "c6g.vm-0a1b2c3d"), "instance", "", "DMI does not tell it",
		},
		"a product for one of two kinds of core": {
			with(n1("243.75"), online, "0-1", midr(0), "0x00000000413fd0c1", midr(1), "0x00000000410fd083"), "cpu.product", "", "fits no product",
		},
		"a product from a contradiction": {
			with(n1("243.75"), online, "0-1", midr(0), "0x00000000411fd401", midr(1), "0x00000000411fd401"), "cpu.product", "", "proc/cpuinfo says otherwise",
		},
		"the ids of groups": {
			with(n1("50.00"), "proc/self/cgroup", "0::/pod550e8400-e29b/docker-0123456789abcdef.scope\n",
				"sys/fs/cgroup/pod550e8400-e29b/docker-0123456789abcdef.scope/cpu.max", "50000 100000\n",
				"proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
			"quota_cores", "0.5", "cpu.max of the control group of this process",
		},
		"an id among the flaws": {
			with(n1("50.00"), process.CPUDir+"/vulnerabilities/meltdown", "Vulnerable\n", process.CPUDir+"/vulnerabilities/i-0123456789abcdef0", "Vulnerable\n",
				process.CPUDir+"/vulnerabilities/mds", "Mitigation: serial 1234\n"),
			"mitigations", "0 of 1; unmitigated: meltdown", "another form than the kernel's",
		},
		"more memory than there is": {
			with(n1("50.00"), "proc/meminfo", "MemTotal: 18014398509481983 kB\n"), "memory_bytes", "", "makes no sense",
		},
		"a hypervisor without its flag": {
			with(fstest.MapFS{}, "proc/cpuinfo", "processor: 0\nvendor_id: AuthenticAMD\nflags: fpu\n", "sys/class/dmi/id/product_name", "Google Compute Engine\n"),
			"hypervisor", "none", "no flag hypervisor",
		},
		"marks of two clouds": {
			with(aws(n1("50.00"), "Google Compute Engine")), "cloud", "", `marks of several clouds: DMI sys_vendor is "Amazon EC2", DMI product_name is "Google Compute Engine"`,
		},
		"DMI and cloud-init at odds": {
			with(aws(n1("243.75"), "c6g.large"), cloudInitData, `{"ds":{"meta_data":{"instance-type":"c7g.large"}}}`), "instance", "c6g.large", "is c7g.large",
		},
		"an id of Alibaba's for a type": {
			with(n1("50.00"), cloudInitData, `{"ds":{"meta_data":{"instance-type":"i-bp67acfmxazb4p56789x"}}}`), "instance", "", "not shown",
		},
		"a container named by a uuid": {
			with(n1("50.00"), "run/systemd/container", "0b5a3c1e-6a2f-4e43-9d9c-6b1f6a2d7c11\n"), "container", "", "",
		},
		"an architecture that is none": {
			with(n1("50.00"), "proc/sys/kernel/arch", strings.Repeat("a", 3000)), "arch", "arm64", "identifies an Arm core",
		},
		"another architecture's cpuinfo": {
			with(n1("50.00"), "proc/sys/kernel/arch", "x86_64"), "arch", "amd64", "although proc/cpuinfo is that of another architecture",
		},
		"an x86 model without end": {
			with(fstest.MapFS{}, "proc/cpuinfo", "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\nmodel name: "+strings.Repeat("x", 1000)+"\n"),
			"cpu.product", "", "is longer than a name",
		},
		"an x86 model of blanks": {
			with(fstest.MapFS{}, "proc/cpuinfo", "processor: 0\nvendor_id: AuthenticAMD\nmodel name:   \n"), "cpu.product", "", "has no model name",
		},
		"more CPUs online than listed": {
			with(n1("50.00"), online, "0-63"), "cores", "64", "proc/cpuinfo lists 2",
		},
		"kinds without a capacity": {
			with(n1("50.00"), online, "0-2", midr(0), "0x00000000413fd0c1", midr(1), "0x00000000411fd401", midr(2), "0x00000000411fd401"),
			"cpu.kinds", "Neoverse V1 on CPUs 1-2, Neoverse N1 on CPUs 0", "the most numerous first, since nothing tells which is the strongest",
		},
		"a quota among garbage": {
			with(n1("50.00"), "proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/cpu.max", "max 100000\n", "sys/fs/cgroup/a/cpu.max", "garbage\n",
				"proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
			"quota_cores", "", `cpu.max of the control group of this process: bad quota "garbage"`,
		},
		"a quota of a group whose name begins alike": {
			with(n1("50.00"), "proc/self/cgroup", "0::/docker/abcdef\n", "sys/fs/cgroup/def/cpu.max", "10000 100000\n", "sys/fs/cgroup/cpu.max", "max 100000\n",
				"proc/self/mountinfo", "1 0 0:1 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
			"quota_cores", "none", "no control group",
		},
		"a list of CPUs that makes no sense": {
			with(n1("50.00"), online, "1-0"), "cores", "2", "proc/cpuinfo lists so many; " + online,
		},
		"a quota of nothing": {
			with(n1("50.00"), "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "0 100000\n",
				"proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
			"quota_cores", "", `bad quota "0"`,
		},
		"flaws of unknown state": {
			with(n1("50.00"), process.CPUDir+"/vulnerabilities/meltdown", "Vulnerable\n", process.CPUDir+"/vulnerabilities/mds", ""),
			"mitigations", "0 of 1; unmitigated: meltdown", "mds is empty",
		},
		"flaws that cannot be read": {
			with(n1("50.00"), process.CPUDir+"/vulnerabilities/mds", ""), "mitigations", "", "mds is empty",
		},
	} {
		_, evidence := Detect(tt.tree, nil)
		found := false
		for _, e := range evidence {
			if e.Field != tt.field {
				continue
			}
			found = true
			if e.Value != tt.value || !strings.Contains(e.Why, tt.why) {
				t.Errorf("%s: %s is %q since %q, want %q since %q", name, e.Field, e.Value, e.Why, tt.value, tt.why)
			}
		}
		if !found {
			t.Errorf("%s: no evidence for %s", name, tt.field)
		}
	}
}

// TestTooManyKinds is a machine whose every core is another one.
func TestTooManyKinds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "processor: %d\nCPU implementer: 0x41\nCPU variant: 0x1\nCPU part: 0x%03x\nCPU revision: 1\n\n", i, i)
	}
	m, evidence := Detect(fstest.MapFS{"proc/cpuinfo": &fstest.MapFile{Data: []byte(b.String())}}, nil)
	if m.CPU.Core != "" || len(m.CPU.Kinds) > 0 {
		t.Errorf("%+v", m.CPU)
	}
	if text := fmt.Sprint(evidence); len(text) > 10_000 || !strings.Contains(text, "4000 kinds of core") {
		t.Errorf("%.1000s", text)
	}
}

// TestUsableCores may not exceed the cores that there are.
func TestUsableCores(t *testing.T) {
	t.Parallel()
	m, _ := Detect(with(n1("50.00"), "proc/self/status", "Cpus_allowed_list:\t0-63\n"), nil)
	if m.Cores != 2 || m.UsableCores != 2 {
		t.Errorf("%v of %d cores are usable", m.UsableCores, m.Cores)
	}
}
