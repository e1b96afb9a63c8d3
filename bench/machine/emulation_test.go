package machine

import (
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const armInfo = "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd aes\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd0c\nCPU revision\t: 0\n"

const x86Info = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Intel(R) Xeon(R)\nstepping\t: 6\nflags\t\t: fpu aes hypervisor\n"

// TestEmulatedPrograms covers what only a running program can notice: that it
// is not what the kernel runs on.
func TestEmulatedPrograms(t *testing.T) {
	t.Parallel()
	const modalias = "sys/devices/system/cpu/modalias"
	for _, tt := range []struct {
		name  string
		files map[string]string
		live  Live
		want  string
	}{
		{
			name:  "arm64 on arm64",
			files: map[string]string{"proc/cpuinfo": armInfo, "proc/sys/kernel/arch": "aarch64\n", modalias: "cpu:type:aarch64:feature:,0000\n"},
			live:  Live{Arch: "arm64", MIDR: 0x410fd0c0},
		},
		{
			name:  "amd64 on amd64",
			files: map[string]string{"proc/cpuinfo": x86Info, "proc/sys/kernel/arch": "x86_64\n", modalias: "cpu:type:x86,ven0000fam0006mod006A:feature:,0000\n"},
			live:  Live{Arch: "amd64", HypervisorID: "KVMKVMKVM"},
		},
		{
			name:  "QEMU in user mode shows the host's cpuinfo",
			files: map[string]string{"proc/cpuinfo": x86Info},
			live:  Live{Arch: "arm64", MIDR: 0x410fd0c0},
			want:  `no CPU implementer; it describes "Intel(R) Xeon(R)"`,
		},
		{
			name:  "newer ones make one up, but not the kernel's architecture",
			files: map[string]string{"proc/cpuinfo": armInfo, "proc/sys/kernel/arch": "x86_64\n"},
			live:  Live{Arch: "arm64", MIDR: 0x410fd0c0},
			want:  "the kernel is built for x86_64",
		},
		{
			name:  "nor the modalias of the CPUs",
			files: map[string]string{"proc/cpuinfo": armInfo, modalias: "cpu:type:x86,ven0000fam0006mod006A:feature:,0000\n"},
			live:  Live{Arch: "arm64", MIDR: 0x410fd0c0},
			want:  "the kernel runs on x86",
		},
		{
			name: "the register is that of QEMU's model max",
			live: Live{Arch: "arm64", MIDR: 0x000f0510},
			want: "QEMU's model max",
		},
		{
			name:  "amd64 on arm64",
			files: map[string]string{"proc/cpuinfo": armInfo},
			live:  Live{Arch: "amd64"},
			want:  "proc/cpuinfo is that of an Arm CPU",
		},
		{
			name:  "Rosetta",
			files: map[string]string{"proc/cpuinfo": strings.Replace(x86Info, "Intel(R) Xeon(R)", "VirtualApple @ 2.50GHz processor", 1)},
			live:  Live{Arch: "amd64"},
			want:  "the CPU calls itself",
		},
		{
			name:  "QEMU's translator as a machine",
			files: map[string]string{"proc/cpuinfo": x86Info},
			live:  Live{Arch: "amd64", HypervisorID: "TCGTCGTCGTCG"},
			want:  "TCGTCGTCGTCG",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for name, s := range tt.files {
				root[name] = text(s)
			}
			// It must not be measured either.
			tt.live.Calibrate = tt.want != ""
			m, _ := Detect(root, &tt.live)
			if m.Emulated != (tt.want != "") || !strings.Contains(m.EmulatedWhy, tt.want) {
				t.Errorf("emulated is %t: %q, want %q", m.Emulated, m.EmulatedWhy, tt.want)
			}
			if m.CPU.Frequency.MeasuredMHz != 0 {
				t.Errorf("measured %.0f MHz", m.CPU.Frequency.MeasuredMHz)
			}
		})
	}
}

// Under QEMU in user mode nothing of the host's CPU is taken for the program's.
func TestUserModeShowsNothingOfTheHost(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{"proc/cpuinfo": text(x86Info)}
	auxv, err := os.ReadFile(tree("aws-c6g.large") + "/proc/self/auxv")
	if err != nil {
		t.Fatal(err)
	}
	root["proc/self/auxv"] = text(string(auxv))
	m, _ := Detect(root, &Live{Arch: "arm64", PageSize: 4096, MIDR: 0x413fd0c1})
	if m.CPU.Core != "Neoverse N1" || m.CPU.Vendor != "Arm" || m.CPU.Family != 0 || m.CPU.BogoMIPS != 0 {
		t.Errorf("CPU = %+v", m.CPU)
	}
	if got := strings.Join(m.CPU.Features, " "); got != "atomics crc32 aes pmull sha2" {
		t.Errorf("features %q are not those of HWCAP", got)
	}
}

func TestHypervisors(t *testing.T) {
	t.Parallel()
	bare := strings.Replace(x86Info, " hypervisor", "", 1)
	for _, tt := range []struct {
		name  string
		files map[string]string
		live  *Live
		want  string
	}{
		{"CPUID", map[string]string{"proc/cpuinfo": x86Info}, &Live{Arch: "amd64", HypervisorID: "Microsoft Hv"}, "Hyper-V"},
		{"an unknown signature", map[string]string{"proc/cpuinfo": x86Info}, &Live{Arch: "amd64", HypervisorID: "NobodyNobody"}, ""},
		{"no flag", map[string]string{"proc/cpuinfo": bare}, nil, none},
		{"no flag, but CPUID noise", map[string]string{"proc/cpuinfo": bare}, &Live{Arch: "amd64", HypervisorID: "\x01\x02"}, none},
		{"a metal instance", map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "c7g.metal"}, nil, none},
		{"a device tree of KVM", map[string]string{"sys/firmware/devicetree/base/hypervisor/compatible": "linux,kvm\x00"}, nil, "KVM"},
		{"a device tree of Xen", map[string]string{"sys/firmware/devicetree/base/hypervisor/compatible": "xen,xen-4.17\x00xen,xen\x00"}, nil, "Xen"},
		{"a board", map[string]string{"sys/firmware/devicetree/base/compatible": "raspberrypi,4-model-b\x00"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for name, s := range tt.files {
				root[name] = text(s)
			}
			if m, _ := Detect(root, tt.live); m.Hypervisor != tt.want {
				t.Errorf("hypervisor is %q, want %q", m.Hypervisor, tt.want)
			}
		})
	}
}

func TestContainers(t *testing.T) {
	t.Parallel()
	plain := map[string]string{
		"proc/self/cgroup":    "0::/user.slice/session-1.scope\n",
		"proc/self/mountinfo": "24 1 259:1 / / rw - ext4 /dev/root rw\n",
	}
	for _, tt := range []struct {
		name, file, content, want string
	}{
		{"none", "proc/uptime", "1 1\n", none},
		{"docker's file", ".dockerenv", "", "docker"},
		{"podman's file", "run/.containerenv", "", "podman"},
		{"systemd's file", "run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
		{"docker's group", "proc/self/cgroup", "0::/system.slice/docker-0123.scope\n", "docker"},
		{"docker's group, v1", "proc/self/cgroup", "4:cpu:/docker/0123\n", "docker"},
		{"kubernetes' group", "proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n", "kubernetes"},
		{"kubernetes' mounts", "proc/self/mountinfo", "1 1 0:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda rw\n", "kubernetes"},
		{"docker's root", "proc/self/mountinfo", "1 1 0:1 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n", "docker"},
		{"docker on the host", "proc/self/mountinfo", "24 1 259:1 / / rw - ext4 /dev/root rw\n1 1 0:1 / /var/lib/docker/overlay2/1/merged rw - overlay overlay rw\n", none},
		{"lxc", "proc/self/cgroup", "0::/lxc.payload.c1/init.scope\n", "lxc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(plain)
			files[tt.file] = tt.content
			root := fstest.MapFS{}
			for name, s := range files {
				root[name] = text(s)
			}
			if m, _ := Detect(root, nil); m.Container != tt.want {
				t.Errorf("container is %q, want %q", m.Container, tt.want)
			}
		})
	}
}
