package fitness

import (
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
)

// Check looks for whatever about the machine affects the figures of plan.
func Check(m machine.Machine, s Snapshot, plan Plan) []Finding {
	var all []Finding
	for _, check := range []func(machine.Machine, Snapshot, Plan) *Finding{
		checkEmulated, checkUnknown, checkGovernor, checkFrequencyLimit, checkTurbo, checkQuota,
		checkCores, checkPageSize, checkMemory, checkDisk, checkOpenFiles, checkBacklog, checkPorts,
		checkTimeWait,
	} {
		if f := check(m, s, plan); f != nil {
			all = append(all, *f)
		}
	}
	return all
}

func checkEmulated(m machine.Machine, _ Snapshot, _ Plan) *Finding {
	if !m.Emulated {
		return nil
	}
	return &Finding{
		Code: EmulatedCPU, Invalid: true,
		Text: "the CPU is emulated: " + m.EmulatedWhy,
		Hint: "measure on a real machine with this CPU",
	}
}

func checkUnknown(m machine.Machine, _ Snapshot, _ Plan) *Finding {
	if m.Emulated || m.CPU.Core != "" || m.CPU.Product != "" {
		return nil
	}
	return found(UnknownCPU, "run armrepro machine --explain as root to see why",
		"the CPU could not be identified")
}

func checkGovernor(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	var others []string
	for _, p := range s.policy {
		if p.governor != "" && p.governor != "performance" && !slices.Contains(others, p.governor) {
			others = append(others, p.governor)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return found(Governor, "as root: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
		"the frequency governor is %s, not performance", strings.Join(others, " and "))
}

func checkFrequencyLimit(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	for _, p := range s.policy {
		if p.allowed != 0 && p.allowed < p.hardware {
			return found(FrequencyLimit, "as root: copy cpufreq/cpuinfo_max_freq to cpufreq/scaling_max_freq for each CPU",
				"CPU %d is limited to %d MHz; it can run at %d MHz", p.cpu, p.allowed/1000, p.hardware/1000)
		}
	}
	return nil
}

func checkTurbo(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	if s.turbo == nil || !*s.turbo {
		return nil
	}
	return found(Turbo, "compare only with runs with the same setting, or turn turbo off in cpufreq/boost or intel_pstate/no_turbo",
		"turbo is on: the CPU exceeds its rated clock when temperature and other cores allow it")
}

func checkQuota(m machine.Machine, _ Snapshot, _ Plan) *Finding {
	cpus, err := process.ParseCPUList(m.Allowed)
	if m.QuotaCores == 0 || err == nil && len(cpus) > 0 && m.QuotaCores >= float64(len(cpus)) {
		return nil
	}
	return found(CPUQuota, "run outside the container or slice, or start the container with --cpuset-cpus instead of --cpus",
		"a control group limits the CPU time to %.4g of %d cores", m.QuotaCores, m.Cores)
}

// checkCores reports the worst of: no core for the gateway, shared cores, shared
// hardware threads.
func checkCores(m machine.Machine, _ Snapshot, plan Plan) *Finding {
	cores := m.UsableCores
	if cores == 0 {
		return nil
	}
	have := strconv.FormatFloat(cores, 'g', 3, 64) + " usable core"
	if cores != 1 {
		have += "s"
	}
	who := fmt.Sprintf("%d gateway worker", plan.Workers)
	if plan.Workers != 1 {
		who += "s"
	}
	who += ", the upstream and the load generator"
	switch {
	case cores < float64(plan.Workers+1):
		return found(FewCores, fewCoresHint(plan.Workers),
			"%s for %s", have, who)
	case len(plan.Pins.Gateway) == 0 && cores >= pinnable && cores >= float64(plan.Workers+peers):
		return found(SharedCores, "use --pin auto",
			"nothing is pinned: the gateway shares cores with the upstream and the load generator")
	case len(plan.Pins.Gateway) == 0:
		return found(SharedCores, "the published figures were measured like this; results vary less with four or more cores",
			"%s share %s", who, have)
	case slices.Equal(plan.Pins.Upstream, plan.Pins.Load) && len(plan.Pins.Load) < peers:
		return found(SharedCores, "use a machine with four or more cores, or --pin none, as the published figures were measured",
			"the upstream and the load generator share CPU %s", process.FormatCPUList(plan.Pins.Load))
	case plan.Pins.SharedThreads:
		return found(SharedThreads, "pin to other CPUs with --pin LIST, or use a machine with more cores",
			"the second hardware thread of the gateway's core runs other processes")
	}
	return nil
}

func fewCoresHint(workers int) string {
	hint := fmt.Sprintf("use a machine with %d or more cores, or a larger quota", workers+peers)
	if workers > 1 {
		hint += ", or fewer --workers"
	}
	return hint
}

func checkPageSize(m machine.Machine, _ Snapshot, _ Plan) *Finding {
	const usual = 4096
	if m.PageSize == 0 || m.PageSize == usual {
		return nil
	}
	return found(LargePages, "to compare, boot a kernel with 4 KiB pages; LuaJIT and jemalloc builds may fail with larger ones",
		"the kernel uses %d KiB pages; the published figures used 4 KiB", m.PageSize>>10)
}

func checkMemory(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	if s.memAvailable == nil || *s.memAvailable >= needMemory {
		return nil
	}
	return found(LowMemory, "stop other programs on this machine, or raise the memory limit of the container",
		"%d MiB of memory is available; a run needs %d MiB", *s.memAvailable>>20, needMemory>>20)
}

func checkDisk(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	if s.freeDisk == nil || *s.freeDisk >= needDisk {
		return nil
	}
	return found(LowDisk, "free some space, or set TMPDIR to a folder on another disk",
		"%d MiB of disk is free for temporary files; a run needs %d MiB", *s.freeDisk>>20, needDisk>>20)
}

func checkOpenFiles(_ machine.Machine, s Snapshot, plan Plan) *Finding {
	// The gateway has a connection to the upstream for each from a client.
	need := max(uint64(2*plan.Connections+spareFiles), fewFiles+1)
	if s.openFiles == nil || *s.openFiles >= need {
		return nil
	}
	return found(FewOpenFiles, fmt.Sprintf("run ulimit -n %d first, or raise nofile in /etc/security/limits.conf", max(need, 1<<16)),
		"the limit on open files is %d; %d connections need %d", *s.openFiles, plan.Connections, need)
}

func checkBacklog(_ machine.Machine, s Snapshot, plan Plan) *Finding {
	if s.somaxconn == nil || *s.somaxconn >= uint64(plan.Connections) {
		return nil
	}
	return found(ShortBacklog, "as root: sysctl net.core.somaxconn=4096",
		"%d connections open at once, but only %d may wait to be accepted (somaxconn)", plan.Connections, *s.somaxconn)
}

func checkPorts(_ machine.Machine, s Snapshot, plan Plan) *Finding {
	if s.ports == nil {
		return nil
	}
	r := *s.ports
	var within []string
	for _, port := range plan.Ports {
		if r.low <= port && port <= r.high && !slices.Contains(r.reserved, port) {
			within = append(within, strconv.Itoa(port))
		}
	}
	if len(within) > 0 {
		ports := strings.Join(within, ",")
		return found(PortRange, "as root: sysctl net.ipv4.ip_local_reserved_ports="+ports,
			"outgoing connections may take ports %s: they are in the range %d to %d", ports, r.low, r.high)
	}
	have, need := r.high-r.low+1-len(r.reserved), plan.Connections+sparePorts
	if have >= need {
		return nil
	}
	return found(PortRange, "as root: sysctl net.ipv4.ip_local_port_range='32768 60999'",
		"there are %d ports for outgoing connections; %d connections need %d", have, plan.Connections, need)
}

func checkTimeWait(_ machine.Machine, s Snapshot, _ Plan) *Finding {
	if s.timeWait == nil || s.ports == nil {
		return nil
	}
	have := s.ports.high - s.ports.low + 1
	if *s.timeWait < uint64(have)/2 {
		return nil
	}
	return found(TimeWait, "wait a minute before the run",
		"%d closed connections still hold a port (TIME_WAIT), out of %d ports per address", *s.timeWait, have)
}
