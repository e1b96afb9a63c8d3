package fitness

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"time"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

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
