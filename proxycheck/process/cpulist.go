package process

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MaxCPUs is above the largest NR_CPUS that the kernel can be built with.
const MaxCPUs = 8192

// ParseCPUList parses a list of CPUs in the kernel's format, such as 0-3,8. The answer
// is sorted and has no CPU twice; the empty string is the empty list.
func ParseCPUList(s string) ([]int, error) {
	var cpus []int
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err := cpuNumber(low)
		last, lastErr := cpuNumber(high)
		if err = cmp.Or(err, lastErr); err == nil && last < first {
			err = fmt.Errorf("range %.40q runs backwards", part)
		}
		if err != nil {
			return nil, fmt.Errorf("parse CPU list %.40q: %w", s, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
		if len(cpus) > MaxCPUs {
			return nil, fmt.Errorf("parse CPU list: more than %d CPUs", MaxCPUs)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func cpuNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n >= MaxCPUs {
		return 0, fmt.Errorf("%.40q is not the number of a CPU", s)
	}
	return int(n), nil
}

// FormatCPUList writes sorted CPUs in the kernel's format: 0-3,8.
func FormatCPUList(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return b.String()
}

// CPUDir is where sysfs describes the CPUs.
const CPUDir = "sys/devices/system/cpu"

// CPUPath is a file that describes a CPU.
func CPUPath(cpu int, name string) string { return path.Join(CPUDir, "cpu"+strconv.Itoa(cpu), name) }

// ReadCPUList reads a file that holds a list of CPUs. An empty list is an error.
func ReadCPUList(root fs.FS, name string) ([]int, error) {
	line, err := ReadLine(root, name)
	if err != nil {
		return nil, err
	}
	cpus, err := ParseCPUList(line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%s lists no CPU", name)
	}
	return cpus, nil
}

// AllowedCPUs lists the online CPUs that this process may run on: what cpuset
// and affinity leave of them.
func AllowedCPUs(root fs.FS) ([]int, error) {
	list, err := ReadField(root, "proc/self/status", "Cpus_allowed_list")
	if err != nil {
		return nil, fmt.Errorf("read the allowed CPUs: %w", err)
	}
	allowed, err := ParseCPUList(list)
	if err != nil {
		return nil, fmt.Errorf("read the allowed CPUs: %w", err)
	}
	if online, err := ReadCPUList(root, CPUDir+"/online"); err == nil {
		allowed = slices.DeleteFunc(allowed, func(cpu int) bool {
			_, found := slices.BinarySearch(online, cpu)
			return !found
		})
	}
	return allowed, nil
}
