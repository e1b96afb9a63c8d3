package machine

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
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
		cpu := LogicalCPU{ID: id, Siblings: siblings(root, id)}
		if len(cpu.Siblings) == 0 {
			cpu.Siblings = []int{id}
		}
		if n, err := process.ReadUint(root, cpuPath(id, "cpu_capacity")); err == nil && n <= 1024 {
			cpu.Capacity = int(n)
		}
		cpus = append(cpus, cpu)
	}
	return cpus
}

// siblings lists the threads of the core of a CPU; nil if unknown.
func siblings(root fs.FS, id int) []int {
	line, err := process.ReadLine(root, cpuPath(id, "topology/thread_siblings_list"))
	if err != nil {
		return nil
	}
	cpus, err := process.ParseCPUList(line)
	if err != nil {
		return nil
	}
	return cpus
}

// onlineCPUs lists the CPUs that the machine has online.
func onlineCPUs(root fs.FS) ([]int, error) { return readCPUList(root, path.Join(cpuDir, "online")) }

func readCPUList(root fs.FS, name string) ([]int, error) {
	line, err := process.ReadLine(root, name)
	if err != nil {
		return nil, err
	}
	cpus, err := process.ParseCPUList(line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%s lists no CPU", name)
	}
	return cpus, nil
}

func cpuPath(id int, name string) string {
	return path.Join(cpuDir, "cpu"+strconv.Itoa(id), name)
}

// readCaches lists the caches of one CPU, as far as they can be read.
func readCaches(root fs.FS, id int) ([]Cache, error) {
	dir := cpuPath(id, "cache")
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, err
	}
	var caches []Cache
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "index") {
			continue
		}
		if c, err := readCache(root, path.Join(dir, e.Name())); err == nil {
			caches = append(caches, c)
		}
	}
	if len(caches) == 0 {
		return nil, fmt.Errorf("%s describes no cache", dir)
	}
	return caches, nil
}

func readCache(root fs.FS, dir string) (Cache, error) {
	level, err := process.ReadUint(root, path.Join(dir, "level"))
	if err != nil {
		return Cache{}, err
	}
	kind, err := process.ReadLine(root, path.Join(dir, "type"))
	if err != nil {
		return Cache{}, err
	}
	kind = strings.ToLower(kind)
	if !slices.Contains([]string{"data", "instruction", "unified"}, kind) {
		return Cache{}, fmt.Errorf("%s makes no sense", dir)
	}
	size, err := process.ReadLine(root, path.Join(dir, "size"))
	if err != nil {
		return Cache{}, err
	}
	bytes, err := cacheSize(size)
	if err != nil || level < 1 || level > 5 {
		return Cache{}, fmt.Errorf("%s makes no sense", dir)
	}
	c := Cache{Level: int(level), Type: kind, SizeBytes: bytes}
	if shared, err := readCPUList(root, path.Join(dir, "shared_cpu_list")); err == nil {
		c.SharedBy = len(shared)
	}
	return c, nil
}

// cacheSize parses the size of a cache as sysfs has it: 64K.
func cacheSize(s string) (uint64, error) {
	digits, ok := strings.CutSuffix(s, "K")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || !ok || n == 0 {
		return 0, fmt.Errorf("parse cache size %.40q: want a number and K", s)
	}
	return n << 10, nil
}
