package machine

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

	"armrepro/proxycheck/process"
)

// LogicalCPU is a CPU as the scheduler sees it: a core, or a thread of one.
type LogicalCPU struct {
	ID int
	// Siblings are the threads of the same core, this one among them.
	Siblings []int
	// Capacity is how much the CPU gets done compared with the others, 1024
	// for the strongest; 0 if the kernel does not tell.
	Capacity int
}

// LogicalCPUs describes the CPUs with the given numbers. What the kernel does
// not tell about a CPU leaves it without siblings but itself.
func LogicalCPUs(root fs.FS, ids []int) []LogicalCPU {
	cpus := make([]LogicalCPU, 0, len(ids))
	for _, id := range ids {
		siblings, err := process.ReadCPUList(root, siblingsFile(id))
		if err != nil {
			siblings = []int{id}
		}
		cpus = append(cpus, LogicalCPU{id, siblings, capacity(root, id)})
	}
	return cpus
}

func siblingsFile(id int) string { return process.CPUPath(id, "topology/thread_siblings_list") }

// capacity is that of a logical CPU.
func capacity(root fs.FS, id int) int {
	n, err := process.ReadUint(root, process.CPUPath(id, "cpu_capacity"))
	if err != nil || n > 1024 {
		return 0
	}
	return int(n)
}

// readCaches lists the caches of one CPU, as far as they can be read.
func readCaches(root fs.FS, id int) ([]Cache, error) {
	dir := process.CPUPath(id, "cache")
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, err
	}
	var caches []Cache
	for _, e := range entries {
		if c, ok := readCache(root, path.Join(dir, e.Name())); ok {
			caches = append(caches, c)
		}
	}
	if len(caches) == 0 {
		return nil, fmt.Errorf("%s describes no cache", dir)
	}
	return caches, nil
}

// readCache reads the folder of a cache. It is false for what is none.
func readCache(root fs.FS, dir string) (c Cache, ok bool) {
	level, err := process.ReadUint(root, path.Join(dir, "level"))
	kind, kindErr := process.ReadLine(root, path.Join(dir, "type"))
	size, sizeErr := process.ReadLine(root, path.Join(dir, "size"))
	digits, isKiB := strings.CutSuffix(size, "K")
	kib, parseErr := strconv.ParseUint(digits, 10, 32)
	kind = strings.ToLower(kind)
	if cmp.Or(err, kindErr, sizeErr, parseErr) != nil || level < 1 || level > 5 || !isKiB || kib == 0 ||
		!slices.Contains([]string{"data", "instruction", "unified"}, kind) {
		return Cache{}, false
	}
	shared, _ := process.ReadCPUList(root, path.Join(dir, "shared_cpu_list"))
	return Cache{int(level), kind, kib << 10, len(shared)}, true
}

func (d *detector) coresOnline() (count int, why string, err error) {
	listed := len(d.processors)
	why = process.CPUDir + "/online is " + process.FormatCPUList(d.online)
	switch {
	case d.onlineErr == nil && listed > 0 && listed != len(d.online):
		return len(d.online), fmt.Sprintf("%s; proc/cpuinfo lists %d", why, listed), nil
	case d.onlineErr == nil:
		return len(d.online), why, nil
	case listed > 0:
		return listed, "proc/cpuinfo lists so many; " + process.Reason(d.onlineErr), nil
	}
	return 0, "", d.onlineErr
}

// firstCPU is the online CPU that stands for all where they are alike.
func (d *detector) firstCPU() int {
	switch {
	case len(d.kinds) > 0 && len(d.kinds[0].cpus) > 0:
		return d.kinds[0].cpus[0]
	case len(d.online) > 0:
		return d.online[0]
	}
	return 0
}

// countOf counts the CPUs or nodes that a file lists.
func (d *detector) countOf(file string) func() (count int, source string, err error) {
	return func() (int, string, error) {
		list, err := process.ReadCPUList(d.root, file)
		return len(list), file, err
	}
}

// findUsableCores looks for what keeps this process from using all cores.
func (d *detector) findUsableCores() {
	m := &d.m
	m.UsableCores = float64(m.Cores)
	allowed, err := process.AllowedCPUs(d.root)
	if n := float64(len(allowed)); n > 0 && (n < m.UsableCores || m.Cores == 0) {
		m.UsableCores = n
	}
	if err == nil && len(allowed) == 0 {
		err = errors.New("Cpus_allowed_list in proc/self/status has no CPU that is online")
	}
	m.Allowed = process.FormatCPUList(allowed)
	d.conclude("cpus_allowed", m.Allowed, "Cpus_allowed_list in proc/self/status", err)

	quota, file := 0.0, ""
	group, err := GroupOf(d.root, "self", "cpu")
	if err == nil {
		quota, file, err = group.quota(d.root)
	}
	text := strconv.FormatFloat(quota, 'f', -1, 64)
	if math.IsInf(quota, 1) {
		text, file = none, "no control group above this process has one"
	} else if err == nil {
		m.QuotaCores, m.UsableCores = quota, min(m.UsableCores, quota)
	}
	d.conclude("quota_cores", text, file, err)
}
