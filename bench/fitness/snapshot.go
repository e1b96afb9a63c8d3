package fitness

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// SnapshotOptions says what a snapshot covers.
type SnapshotOptions struct {
	// Pids are the processes of the measurement, this one too; their
	// descendants go with them.
	Pids []int
	// CPUs are those that the measurement may use; nil for those that this
	// process may.
	CPUs []int
	// FreeDisk asks for the free space in bytes of the folder that a run writes
	// to; nil leaves it unknown.
	FreeDisk func() (uint64, error)
	// MeasureMHz measures the frequency; nil leaves it unknown.
	MeasureMHz func() float64
}

// Snapshot is the state of a machine at one moment, as far as it affects a
// measurement. What could not be read is nil and leads to no finding.
type Snapshot struct {
	// uptime is the time since the machine was started, boot the moment of
	// that by the system clock: it moves when the clock is set.
	uptime *time.Duration
	boot   *time.Time
	cpu    *CPUTimes
	procs  processTable
	// throttled is how long the control groups of this process and of
	// Pids have been throttled.
	throttled *time.Duration
	// swapped counts the pages that were swapped in or out.
	swapped *uint64
	// thermal counts how often the CPUs overheated.
	thermal *uint64
	policy  []cpuPolicy
	turbo   *bool
	mhz     *float64

	memAvailable *uint64
	freeDisk     *uint64
	openFiles    *uint64
	somaxconn    *uint64
	ports        *portRange
	timeWait     *uint64

	// unread has, by the code of the finding, why a check cannot be made.
	unread map[string]string
}

// TakeSnapshot reads the state of the machine at root. It takes some
// milliseconds, and 50 more if the frequency is measured.
func TakeSnapshot(root fs.FS, opts SnapshotOptions) Snapshot {
	s := Snapshot{unread: map[string]string{}}
	cpus := opts.CPUs
	if cpus == nil {
		cpus = deref(fact(&s, root, process.AllowedCPUs, ThermalThrottling, Governor, FrequencyLimit))
	}
	s.uptime = fact(&s, root, readUptime, OtherLoad, Throttled)
	s.boot = fact(&s, root, readBootTime, ClockStep)
	s.cpu = fact(&s, root, ReadCPUTimes, Steal, OtherLoad)
	s.swapped = fact(&s, root, readSwapped, Swapping)
	s.turbo = fact(&s, root, readTurbo, Turbo)
	s.memAvailable = fact(&s, root, availableMemory, LowMemory)
	s.openFiles = fact(&s, root, func(root fs.FS) (uint64, error) {
		return process.ReadFieldUint(root, "proc/self/limits", "Max open files")
	}, FewOpenFiles)
	s.somaxconn = fact(&s, root, func(root fs.FS) (uint64, error) { return process.ReadUint(root, "proc/sys/net/core/somaxconn") }, ShortBacklog)
	s.ports = fact(&s, root, readPortRange, PortRange, TimeWait)
	s.timeWait = fact(&s, root, readTimeWait, TimeWait)
	s.procs = deref(fact(&s, root, func(root fs.FS) (processTable, error) { return readProcessTable(root, opts.Pids) }, OtherLoad))
	s.throttled = fact(&s, root, func(root fs.FS) (time.Duration, error) { return throttledTime(root, opts.Pids) }, Throttled)
	s.thermal = fact(&s, root, func(root fs.FS) (uint64, error) { return readThermal(root, cpus) }, ThermalThrottling)
	s.policy = deref(fact(&s, root, func(root fs.FS) ([]cpuPolicy, error) { return readPolicies(root, cpus) }, Governor, FrequencyLimit))
	s.freeDisk = fact(&s, root, opts.freeDisk, LowDisk)
	s.mhz = fact(&s, root, opts.measureMHz, FrequencyMoved)
	return s
}

// fact reads one thing. If that fails it returns nil, and s records why for the
// checks that need it.
func fact[T any](s *Snapshot, root fs.FS, read func(fs.FS) (T, error), needs ...string) *T {
	v, err := read(root)
	if err == nil {
		return &v
	}
	for _, code := range needs {
		s.unread[code] = cmp.Or(s.unread[code], process.Reason(err))
	}
	return nil
}

// deref is the zero value for nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (o SnapshotOptions) freeDisk(fs.FS) (uint64, error) {
	if o.FreeDisk == nil {
		return 0, errors.New("not requested")
	}
	return o.FreeDisk()
}

func (o SnapshotOptions) measureMHz(fs.FS) (float64, error) {
	if o.MeasureMHz == nil {
		return 0, errors.New("the frequency is not measured")
	}
	return o.MeasureMHz(), nil
}

// readUptime reads the first number of /proc/uptime, in seconds.
func readUptime(root fs.FS) (time.Duration, error) {
	line, err := process.ReadLine(root, "proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return 0, fmt.Errorf("proc/uptime: %.40q is not a time", line)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// readBootTime reads btime of /proc/stat, in seconds of the system clock.
func readBootTime(root fs.FS) (time.Time, error) {
	n, err := process.ReadFieldUint(root, "proc/stat", "btime")
	if err != nil || n > 1<<40 {
		return time.Time{}, cmp.Or(err, errors.New("proc/stat: btime is implausible"))
	}
	return time.Unix(int64(n), 0), nil
}

// readSwapped reads the pages swapped in and out since the machine started.
func readSwapped(root fs.FS) (uint64, error) {
	in, err := process.ReadFieldUint(root, "proc/vmstat", "pswpin")
	out, outErr := process.ReadFieldUint(root, "proc/vmstat", "pswpout")
	return in + out, cmp.Or(err, outErr)
}

// availableMemory is what programs can still get without swapping: of the
// machine, and of the control group.
func availableMemory(root fs.FS) (uint64, error) {
	n, err := process.ReadKiB(root, "proc/meminfo", "MemAvailable")
	if g, groupErr := machine.GroupOf(root, "self", "memory"); groupErr == nil {
		n = min(n, memoryLeft(root, g))
	}
	return n, err
}

// portRange is the range of ports for outgoing connections, and those in it
// that are kept free for listeners.
type portRange struct {
	low, high int
	reserved  []int
}

func (r portRange) size() int { return r.high - r.low + 1 }

func readPortRange(root fs.FS) (portRange, error) {
	const file = "proc/sys/net/ipv4/ip_local_port_range"
	line, err := process.ReadLine(root, file)
	if err != nil {
		return portRange{}, err
	}
	var r portRange
	if _, err := fmt.Sscanf(line, "%d %d", &r.low, &r.high); err != nil || r.low < 0 || r.high > 65535 || r.low > r.high {
		return portRange{}, fmt.Errorf("%s: %.40q is not a range", file, line)
	}
	reserved, _ := process.ReadLine(root, "proc/sys/net/ipv4/ip_local_reserved_ports")
	r.reserved = parsePorts(reserved, r.low, r.high)
	return r, nil
}

// parsePorts lists the ports from low to high in a list such as 1980,9080-9091, and
// ignores what is malformed. The format is that of a CPU list, but ports go beyond the
// CPUs.
func parsePorts(s string, low, high int) []int {
	var listed [1 << 16]bool
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, toErr := strconv.ParseUint(last, 10, 16)
		for p := from; err == nil && toErr == nil && p <= to; p++ {
			listed[p] = true
		}
	}
	var ports []int
	for p := low; p <= high; p++ {
		if listed[p] {
			ports = append(ports, p)
		}
	}
	return ports
}

// readTimeWait reads the number of ended TCP connections that still hold their
// port: "TCP: inuse 4 orphan 0 tw 10 alloc 5 mem 1".
func readTimeWait(root fs.FS) (uint64, error) {
	const file = "proc/net/sockstat"
	tcp, err := process.ReadField(root, file, "TCP")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(tcp)
	i := slices.Index(fields, "tw")
	if i < 0 || i+1 == len(fields) {
		return 0, fmt.Errorf("%s has no tw", file)
	}
	return strconv.ParseUint(fields[i+1], 10, 63)
}

// cpuPolicy is how fast a CPU may run, in kHz; 0 is unknown.
type cpuPolicy struct {
	cpu               int
	governor          string
	allowed, hardware uint64
}

// readPolicies reads the policies of the CPUs that have one. Most virtual
// machines have none, which is an error.
func readPolicies(root fs.FS, cpus []int) ([]cpuPolicy, error) {
	var policies []cpuPolicy
	for _, cpu := range cpus {
		governor, err1 := process.ReadLine(root, process.CPUPath(cpu, "cpufreq/scaling_governor"))
		allowed, err2 := process.ReadUint(root, process.CPUPath(cpu, "cpufreq/scaling_max_freq"))
		hardware, err3 := process.ReadUint(root, process.CPUPath(cpu, "cpufreq/cpuinfo_max_freq"))
		if err1 == nil || err2 == nil || err3 == nil {
			policies = append(policies, cpuPolicy{cpu, governor, allowed, hardware})
		}
	}
	if len(policies) == 0 {
		return nil, errors.New("no CPU has a cpufreq policy")
	}
	return policies, nil
}

// readTurbo says whether the CPU may run above its rated frequency.
func readTurbo(root fs.FS) (bool, error) {
	if n, err := process.ReadUint(root, process.CPUDir+"/intel_pstate/no_turbo"); err == nil {
		return n == 0, nil
	}
	n, err := process.ReadUint(root, process.CPUDir+"/cpufreq/boost")
	return n == 1, err
}

// readThermal adds up how often the cores and packages overheated; only x86 counts
// it.
func readThermal(root fs.FS, cpus []int) (total uint64, err error) {
	counted := false
	for _, cpu := range cpus {
		for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
			n, readErr := process.ReadUint(root, process.CPUPath(cpu, "thermal_throttle/"+name))
			total, counted, err = total+n, counted || readErr == nil, cmp.Or(err, readErr)
		}
		if !counted {
			return 0, err // what one CPU lacks, all lack
		}
	}
	if !counted {
		return 0, fs.ErrNotExist
	}
	return total, nil
}

// memoryLeft is how much memory in bytes the group and those above it may still
// use; the largest number means no limit. File cache that can be dropped counts as
// left.
func memoryLeft(root fs.FS, g machine.ControlGroup) uint64 {
	left := uint64(math.MaxUint64)
	limitFile, usageFile, cacheName := "memory.max", "memory.current", "inactive_file"
	if !g.V2 {
		limitFile, usageFile, cacheName = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	for _, dir := range g.Upwards() {
		// v2 writes "max" for no limit.
		limit, err := process.ReadUint(root, path.Join(dir, limitFile))
		if err != nil {
			continue
		}
		// If usage cannot be read, the whole limit is left.
		used, _ := process.ReadUint(root, path.Join(dir, usageFile))
		cache, _ := process.ReadFieldUint(root, path.Join(dir, "memory.stat"), cacheName)
		used -= min(used, cache)
		left = min(left, limit-min(limit, used))
	}
	return left
}

// throttledTime is how long the control groups of this process and of pids, and those
// above them, have been throttled since they were created. A common parent counts
// once. It is an error if no group reports it.
func throttledTime(root fs.FS, pids []int) (total time.Duration, err error) {
	names := []string{"self"}
	for _, pid := range pids {
		names = append(names, strconv.Itoa(pid))
	}
	told := false
	seen := map[string]bool{}
	for _, name := range names {
		g, groupErr := machine.GroupOf(root, name, "cpu")
		if groupErr != nil {
			continue
		}
		for _, dir := range g.Upwards() {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			d, readErr := throttled(root, path.Join(dir, "cpu.stat"), g.V2)
			total, told, err = total+d, told || readErr == nil, cmp.Or(err, readErr)
		}
	}
	if !told {
		return 0, cmp.Or(err, errors.New("no CPU control group is known"))
	}
	return total, nil
}

// throttled takes the throttled time out of cpu.stat: throttled_usec in v2,
// throttled_time in nanoseconds in v1.
func throttled(root fs.FS, name string, v2 bool) (time.Duration, error) {
	key, unit := "throttled_time", time.Nanosecond
	if v2 {
		key, unit = "throttled_usec", time.Microsecond
	}
	n, err := process.ReadFieldUint(root, name, key)
	if err == nil && n > uint64(math.MaxInt64/8/unit) {
		err = fmt.Errorf("%s: %s is implausible", name, key)
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}
