package fitness

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// Plan is what will run on a machine.
type Plan struct {
	// Workers is the number of the gateway's worker processes.
	Workers int
	// Connections is how many connections the load keeps open.
	Connections int
	// Ports are the listening ports.
	Ports []int
	// Pins says where the processes are pinned.
	Pins Pins
}

// What a run needs, with a wide margin: etcd keeps 2 MiB on disk, and etcd and
// the gateway together use less than 200 MiB of memory.
const (
	needMemory = 384 << 20
	needDisk   = 64 << 20
	// spareFiles are the open files in addition to the connections.
	spareFiles = 512
	// fewFiles is the limit up to which APISIX warns of low performance.
	fewFiles = 1024
	// sparePorts are outgoing ports that reconnects occupy: 30 a second,
	// each for the minute of TIME_WAIT, twice.
	sparePorts = 4096
	// peers are the busy processes other than the workers: the upstream and
	// the load generator.
	peers = 2
	// usualPage is the page size of the published figures in bytes.
	usualPage = 4096
)

// Check looks for whatever about the machine affects the figures of plan.
func Check(m machine.Machine, s Snapshot, plan Plan) []Finding {
	allowed, _ := process.ParseCPUList(m.Allowed)
	// The gateway has a connection to the upstream for each from a client.
	files := max(uint64(2*plan.Connections+spareFiles), fewFiles+1)
	ports := deref(s.ports)
	return made(
		when(m.Emulated, EmulatedCPU, "measure on a real machine with this CPU",
			"the CPU is emulated: %s", m.EmulatedWhy),
		when(!m.Emulated && cmp.Or(m.CPU.Core, m.CPU.Product) == "", UnknownCPU, "run armrepro machine --explain as root to see why",
			"the CPU could not be identified"),
		checkGovernor(s),
		checkFrequencyLimit(s),
		when(deref(s.turbo), Turbo, "compare only with runs with the same setting, or turn turbo off in cpufreq/boost or intel_pstate/no_turbo",
			"turbo is on: the CPU exceeds its rated clock when temperature and other cores allow it"),
		when(m.QuotaCores != 0 && (len(allowed) == 0 || m.QuotaCores < float64(len(allowed))), CPUQuota,
			"run outside the container or slice, or start the container with --cpuset-cpus instead of --cpus",
			"a control group limits the CPU time to %.4g of %d cores", m.QuotaCores, m.Cores),
		checkCores(m.UsableCores, plan),
		when(m.PageSize != 0 && m.PageSize != usualPage, LargePages,
			"to compare, boot a kernel with 4 KiB pages; LuaJIT and jemalloc builds may fail with larger ones",
			"the kernel uses %d KiB pages; the published figures used 4 KiB", m.PageSize>>10),
		when(below(s.memAvailable, needMemory), LowMemory, "stop other programs on this machine, or raise the memory limit of the container",
			"%d MiB of memory is available; a run needs %d MiB", deref(s.memAvailable)>>20, needMemory>>20),
		when(below(s.freeDisk, needDisk), LowDisk, "free some space, or set TMPDIR to a folder on another disk",
			"%d MiB of disk is free for temporary files; a run needs %d MiB", deref(s.freeDisk)>>20, needDisk>>20),
		when(below(s.openFiles, files), FewOpenFiles,
			fmt.Sprintf("run ulimit -n %d first, or raise nofile in /etc/security/limits.conf", max(files, 1<<16)),
			"the limit on open files is %d; %d connections need %d", deref(s.openFiles), plan.Connections, files),
		when(below(s.somaxconn, uint64(plan.Connections)), ShortBacklog, "as root: sysctl net.core.somaxconn=4096",
			"%d connections open at once, but only %d may wait to be accepted (somaxconn)", plan.Connections, deref(s.somaxconn)),
		checkPorts(ports, plan),
		when(s.ports != nil && deref(s.timeWait) >= max(1, uint64(ports.size())/2), TimeWait, "wait a minute before the run",
			"%d closed connections still hold a port (TIME_WAIT), out of %d ports per address", deref(s.timeWait), ports.size()),
	)
}

// below says that a limit is known and too low.
func below(have *uint64, need uint64) bool { return have != nil && *have < need }

func checkGovernor(s Snapshot) *Finding {
	var others []string
	for _, p := range s.policy {
		if p.governor != "" && p.governor != "performance" && !slices.Contains(others, p.governor) {
			others = append(others, p.governor)
		}
	}
	return when(len(others) > 0, Governor, "as root: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
		"the frequency governor is %s, not performance", strings.Join(others, " and "))
}

func checkFrequencyLimit(s Snapshot) *Finding {
	for _, p := range s.policy {
		if p.allowed != 0 && p.allowed < p.hardware {
			return when(true, FrequencyLimit, "as root: copy cpufreq/cpuinfo_max_freq to cpufreq/scaling_max_freq for each CPU",
				"CPU %d is limited to %d MHz; it can run at %d MHz", p.cpu, p.allowed/1000, p.hardware/1000)
		}
	}
	return nil
}

// checkCores reports the worst of: no core for the gateway, shared cores, shared
// hardware threads.
func checkCores(cores float64, plan Plan) *Finding {
	have := strconv.FormatFloat(cores, 'g', 3, 64) + " usable core"
	if cores != 1 {
		have += "s"
	}
	who, hint := fmt.Sprintf("%d gateway worker", plan.Workers), ""
	if plan.Workers > 1 {
		who, hint = who+"s", ", or fewer --workers"
	}
	who += ", the upstream and the load generator"
	unpinned, pins := len(plan.Pins.Gateway) == 0, plan.Pins
	switch {
	case cores == 0:
		return nil
	case cores < float64(plan.Workers+1):
		return when(true, FewCores, fmt.Sprintf("use a machine with %d or more cores, or a larger quota%s", plan.Workers+peers, hint),
			"%s for %s", have, who)
	case unpinned && cores >= pinnable && cores >= float64(plan.Workers+peers):
		return when(true, SharedCores, "use --pin auto",
			"nothing is pinned: the gateway shares cores with the upstream and the load generator")
	case unpinned:
		return when(true, SharedCores, "the published figures were measured like this; results vary less with four or more cores",
			"%s share %s", who, have)
	case slices.Equal(pins.Upstream, pins.Load) && len(pins.Load) < peers:
		return when(true, SharedCores, "use a machine with four or more cores, or --pin none, as the published figures were measured",
			"the upstream and the load generator share CPU %s", process.FormatCPUList(pins.Load))
	}
	return when(pins.SharedThreads, SharedThreads, "pin to other CPUs with --pin LIST, or use a machine with more cores",
		"the second hardware thread of the gateway's core runs other processes")
}

func checkPorts(r portRange, plan Plan) *Finding {
	var within []string
	for _, port := range plan.Ports {
		if r.low <= port && port <= r.high && !slices.Contains(r.reserved, port) {
			within = append(within, strconv.Itoa(port))
		}
	}
	if ports := strings.Join(within, ","); ports != "" {
		return when(true, PortRange, "as root: sysctl net.ipv4.ip_local_reserved_ports="+ports,
			"outgoing connections may take ports %s: they are in the range %d to %d", ports, r.low, r.high)
	}
	have := r.size() - len(r.reserved)
	return when(r.high > 0 && have < plan.Connections+sparePorts, PortRange, "as root: sysctl net.ipv4.ip_local_port_range='32768 60999'",
		"there are %d ports for outgoing connections; %d connections need %d", have, plan.Connections, plan.Connections+sparePorts)
}
