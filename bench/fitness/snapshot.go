package fitness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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
	// DataDir is a folder that a run writes to; empty if there is none.
	DataDir string
	// FreeDisk asks for the free space of a folder in bytes; nil leaves it
	// unknown.
	FreeDisk func(dir string) (uint64, error)
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
	cpus := deref(fact(&s, root, opts.cpus, ThermalThrottling, Governor, FrequencyLimit))
	s.uptime = fact(&s, root, readUptime, OtherLoad, Throttled)
	s.boot = fact(&s, root, readBootTime, ClockStep)
	s.cpu = fact(&s, root, ReadCPUTimes, Steal, OtherLoad)
	s.swapped = fact(&s, root, readSwapped, Swapping)
	s.turbo = fact(&s, root, readTurbo, Turbo)
	s.memAvailable = fact(&s, root, availableMemory, LowMemory)
	s.openFiles = fact(&s, root, openFilesLimit, FewOpenFiles)
	s.somaxconn = fact(&s, root, readSomaxconn, ShortBacklog)
	s.ports = fact(&s, root, readPortRange, PortRange, TimeWait)
	s.timeWait = fact(&s, root, readTimeWait, TimeWait)
	s.procs = deref(fact(&s, root, func(root fs.FS) (processTable, error) { return readProcessTable(root, opts.Pids) }, OtherLoad))
	s.throttled = fact(&s, root, func(root fs.FS) (time.Duration, error) { return throttledTime(root, groupsOf(root, opts.Pids)) }, Throttled)
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
		if s.unread[code] == "" {
			s.unread[code] = process.Reason(err)
		}
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

func (o SnapshotOptions) cpus(root fs.FS) ([]int, error) {
	if o.CPUs != nil {
		return o.CPUs, nil
	}
	return process.AllowedCPUs(root)
}

func (o SnapshotOptions) freeDisk(fs.FS) (uint64, error) {
	if o.FreeDisk == nil || o.DataDir == "" {
		return 0, errors.New("not requested")
	}
	return o.FreeDisk(o.DataDir)
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
	n, err := namedUint(root, "proc/stat", "btime")
	if err != nil || n > 1<<40 {
		return time.Time{}, cmpErr(err, errors.New("proc/stat: btime is implausible"))
	}
	return time.Unix(int64(n), 0), nil
}

// namedUint reads the number behind a name at the beginning of a line, as
// /proc/stat and /proc/vmstat have them.
func namedUint(root fs.FS, file, name string) (uint64, error) {
	b, err := process.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == name {
			n, err := strconv.ParseUint(string(fields[1]), 10, 63)
			if err != nil {
				return 0, fmt.Errorf("%s: %s: %w", file, name, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// readSwapped reads the pages swapped in and out since the machine started.
func readSwapped(root fs.FS) (uint64, error) {
	in, err := namedUint(root, "proc/vmstat", "pswpin")
	if err != nil {
		return 0, err
	}
	out, err := namedUint(root, "proc/vmstat", "pswpout")
	if err != nil {
		return 0, err
	}
	return in + out, nil
}

// availableMemory is what programs can still get without swapping: of the
// machine, and of the control group.
func availableMemory(root fs.FS) (uint64, error) {
	n, err := process.ReadKiB(root, "proc/meminfo", "MemAvailable")
	if err != nil {
		return 0, err
	}
	if g, err := machine.GroupOf(root, "self", "memory"); err == nil {
		n = min(n, memoryLeft(root, g))
	}
	return n, nil
}

// openFilesLimit reads the soft limit of this process.
func openFilesLimit(root fs.FS) (uint64, error) {
	b, err := process.ReadFile(root, "proc/self/limits")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 1 {
			continue
		}
		return strconv.ParseUint(fields[0], 10, 64)
	}
	return 0, errors.New("proc/self/limits has no limit on open files")
}

// portRange is the range of ports for outgoing connections, and those in it
// that are kept free for listeners.
type portRange struct {
	low, high int
	reserved  []int
}

func readPortRange(root fs.FS) (portRange, error) {
	const file = "proc/sys/net/ipv4/ip_local_port_range"
	line, err := process.ReadLine(root, file)
	if err != nil {
		return portRange{}, err
	}
	var r portRange
	if n, err := fmt.Sscanf(line, "%d %d", &r.low, &r.high); n != 2 || err != nil || r.low < 0 || r.high > 65535 || r.low > r.high {
		return portRange{}, fmt.Errorf("%s: %.40q is not a range", file, line)
	}
	// The format is that of a CPU list, but ports go beyond the CPUs.
	if line, err := process.ReadLine(root, "proc/sys/net/ipv4/ip_local_reserved_ports"); err == nil {
		r.reserved = slices.DeleteFunc(parsePorts(line), func(port int) bool { return port < r.low || port > r.high })
	}
	return r, nil
}

// parsePorts parses a list such as 1980,9080-9091 and ignores what is malformed.
func parsePorts(s string) []int {
	var listed [1 << 16]bool
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		for p := first; err1 == nil && err2 == nil && p <= last; p++ {
			listed[p] = true
		}
	}
	var ports []int
	for p, ok := range listed {
		if ok {
			ports = append(ports, p)
		}
	}
	return ports
}

// readTimeWait reads the number of ended TCP connections that still hold their
// port: "TCP: inuse 4 orphan 0 tw 10 alloc 5 mem 1".
func readTimeWait(root fs.FS) (uint64, error) {
	const file = "proc/net/sockstat"
	b, err := process.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	tcp, _ := process.Field(b, "TCP")
	fields := strings.Fields(tcp)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "tw" {
			return strconv.ParseUint(fields[i+1], 10, 63)
		}
	}
	return 0, fmt.Errorf("%s has no tw", file)
}

const cpuDir = "sys/devices/system/cpu"

// cpuPath is a file that describes a CPU.
func cpuPath(cpu int, name string) string {
	return path.Join(cpuDir, "cpu"+strconv.Itoa(cpu), name)
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
		p := cpuPolicy{cpu: cpu}
		p.governor, _ = process.ReadLine(root, cpuPath(cpu, "cpufreq/scaling_governor"))
		p.allowed, _ = process.ReadUint(root, cpuPath(cpu, "cpufreq/scaling_max_freq"))
		p.hardware, _ = process.ReadUint(root, cpuPath(cpu, "cpufreq/cpuinfo_max_freq"))
		if p.governor != "" || p.allowed != 0 || p.hardware != 0 {
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return nil, errors.New("no CPU has a cpufreq policy")
	}
	return policies, nil
}

func readSomaxconn(root fs.FS) (uint64, error) {
	return process.ReadUint(root, "proc/sys/net/core/somaxconn")
}

// readTurbo says whether the CPU may run above its rated frequency.
func readTurbo(root fs.FS) (bool, error) {
	if n, err := process.ReadUint(root, path.Join(cpuDir, "intel_pstate/no_turbo")); err == nil {
		return n == 0, nil
	}
	n, err := process.ReadUint(root, path.Join(cpuDir, "cpufreq/boost"))
	return n == 1, err
}

// readThermal adds up how often the cores and packages overheated; only x86 counts
// it.
func readThermal(root fs.FS, cpus []int) (uint64, error) {
	var total uint64
	var first error
	found := false
	for _, cpu := range cpus {
		for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
			n, err := process.ReadUint(root, cpuPath(cpu, path.Join("thermal_throttle", name)))
			if err != nil {
				first = cmpErr(first, err)
				continue
			}
			total, found = total+n, true
		}
		if !found {
			break // what one CPU lacks, all lack
		}
	}
	if !found {
		return 0, cmpErr(first, fs.ErrNotExist)
	}
	return total, nil
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// groupsOf finds the control groups for the CPU of this process and of pids.
func groupsOf(root fs.FS, pids []int) []machine.ControlGroup {
	names := []string{"self"}
	for _, pid := range pids {
		names = append(names, strconv.Itoa(pid))
	}
	var groups []machine.ControlGroup
	for _, name := range names {
		if g, err := machine.GroupOf(root, name, "cpu"); err == nil {
			groups = append(groups, g)
		}
	}
	return groups
}
