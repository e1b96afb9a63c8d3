package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// controlGroup is a control group that a process is in: the folder of the group
// and the folder that its hierarchy is mounted on. The limits of every group
// between the two hold as well.
type controlGroup struct {
	dir, mount string
	v2         bool
}

// groupOf finds the control group that a controller, cpu or memory, puts a
// process in; pid is a number or self. The error says why none could be found.
func groupOf(root fs.FS, pid, controller string) (controlGroup, error) {
	b, err := readFile(root, path.Join("proc", pid, "cgroup"))
	if err != nil {
		return controlGroup{}, err
	}
	v1, v2 := parseCgroup(b, controller)
	mounts, err := readFile(root, "proc/self/mountinfo")
	if err != nil {
		return controlGroup{}, err
	}
	if v1 != "" {
		if m, ok := findMount(mounts, "cgroup", controller); ok {
			return m.group(v1, false), nil
		}
	}
	if v2 != "" {
		if m, ok := findMount(mounts, "cgroup2", ""); ok {
			return m.group(v2, true), nil
		}
	}
	return controlGroup{}, fmt.Errorf("no control group for the %s is mounted", controller)
}

// parseCgroup parses /proc/PID/cgroup: the group that the v1 controller puts the
// process in, and the one of v2. Either may be empty.
func parseCgroup(b []byte, controller string) (v1, v2 string) {
	for line := range bytes.Lines(b) {
		parts := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			v2 = parts[2]
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == controller {
				v1 = parts[2]
			}
		}
	}
	return v1, v2
}

// cgroupMount is where a hierarchy is mounted, and which group of it is the
// top one there: inside a container that is the container's own.
type cgroupMount struct{ root, point string }

// findMount finds a hierarchy in /proc/PID/mountinfo (man 5
// proc_pid_mountinfo) by its type and, for v1, its controller.
func findMount(b []byte, fsType, controller string) (cgroupMount, bool) {
	for line := range bytes.Lines(b) {
		before, after, ok := strings.Cut(string(line), " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(super) < 3 || super[0] != fsType {
			continue
		}
		if controller != "" && !hasOption(super[2], controller) {
			continue
		}
		return cgroupMount{root: unescape(fields[3]), point: unescape(fields[4])}, true
	}
	return cgroupMount{}, false
}

func hasOption(options, want string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// unescape undoes the kernel's octal escapes of white space in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// group is where under the mount point the group of a process is.
func (m cgroupMount) group(name string, v2 bool) controlGroup {
	mount := strings.TrimPrefix(path.Clean(m.point), "/")
	within := name
	if m.root != "/" {
		var ok bool
		within, ok = strings.CutPrefix(name, m.root)
		if !ok || within != "" && !strings.HasPrefix(within, "/") {
			within = "/" // a group outside of what is mounted here
		}
	}
	// A group beyond the namespace's top shows as /../…; Clean keeps it in.
	return controlGroup{dir: path.Join(mount, path.Clean("/"+within)), mount: mount, v2: v2}
}

// memoryLeft is the least memory in bytes that the group and those above it may
// still use; the largest number means no limit. What they hold in files that can
// be read again counts as left.
func (g controlGroup) memoryLeft(root fs.FS) uint64 {
	left := uint64(math.MaxUint64)
	limitFile, usageFile, cacheName := "memory.max", "memory.current", "inactive_file"
	if !g.v2 {
		limitFile, usageFile, cacheName = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	for _, dir := range g.upwards() {
		// v2 writes max for no limit, which is no number.
		limit, err := readUint(root, path.Join(dir, limitFile))
		if err != nil {
			continue
		}
		// What cannot be read leaves the whole limit.
		used, _ := readUint(root, path.Join(dir, usageFile))
		cache, _ := namedUint(root, path.Join(dir, "memory.stat"), cacheName)
		used -= min(used, cache)
		left = min(left, limit-min(limit, used))
	}
	return left
}

// quota is the least CPU time in cores that the group and those above it may
// use, and what says so; not by its path, in which the names of groups are often
// ids. Infinity means no limit; it is an error if a limit that cannot be read may
// be the least.
func (g controlGroup) quota(root fs.FS) (cores float64, source string, err error) {
	cores = math.Inf(1)
	for level, dir := range g.upwards() {
		name, read := path.Join(dir, "cpu.max"), readQuotaV2
		if !g.v2 {
			name, read = path.Join(dir, "cpu.cfs_quota_us"), readQuotaV1
		}
		q, qerr := read(root, name)
		if qerr != nil {
			// The root of the hierarchy has no such file.
			if err == nil && !errors.Is(qerr, fs.ErrNotExist) {
				err = fmt.Errorf("%s: %w", groupFile(name, level), withoutPath(qerr))
			}
			continue
		}
		if q < cores {
			cores, source = q, groupFile(name, level)
		}
	}
	if err != nil && math.IsInf(cores, 1) {
		return 0, "", err
	}
	return cores, source, nil
}

// groupFile names a file of the control group so many levels up.
func groupFile(name string, level int) string {
	switch level {
	case 0:
		return path.Base(name) + " of the control group of this process"
	case 1:
		return path.Base(name) + " of the control group above that of this process"
	}
	return fmt.Sprintf("%s of the control group %d levels above that of this process", path.Base(name), level)
}

// withoutPath is what is wrong with a file, without its name.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// upwards lists the folders from the group's to the mount point's.
func (g controlGroup) upwards() []string {
	dirs := []string{g.dir}
	for dir := g.dir; dir != g.mount && dir != "." && dir != "/"; {
		dir = path.Dir(dir)
		dirs = append(dirs, dir)
	}
	return dirs
}

// readQuotaV2 reads cpu.max: "max 100000" or "150000 100000".
func readQuotaV2(root fs.FS, name string) (float64, error) {
	line, err := readLine(root, name)
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(line, " ")
	if quota == "max" {
		return math.Inf(1), nil
	}
	return coresOf(quota, period)
}

// readQuotaV1 reads cpu.cfs_quota_us, -1 for no limit, and the period beside
// it.
func readQuotaV1(root fs.FS, name string) (float64, error) {
	quota, err := readLine(root, name)
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(quota, "-") {
		return math.Inf(1), nil
	}
	period, err := readLine(root, path.Join(path.Dir(name), "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return coresOf(quota, period)
}

func coresOf(quota, period string) (float64, error) {
	q, err := strconv.ParseUint(quota, 10, 48)
	if err != nil || q == 0 {
		return 0, fmt.Errorf("bad quota %q", clip(quota))
	}
	p, err := strconv.ParseUint(period, 10, 48)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("bad period %q", clip(period))
	}
	return float64(q) / float64(p), nil
}

// throttledTime is how long the groups and those above them were kept from
// running because their CPU time was used up, since they exist. A group that
// several of them lie in counts once. It is an error if none of them tells.
func throttledTime(root fs.FS, groups []controlGroup) (time.Duration, error) {
	var total time.Duration
	var first error
	told := false
	seen := map[string]bool{}
	for _, g := range groups {
		for _, dir := range g.upwards() {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			b, err := readFile(root, path.Join(dir, "cpu.stat"))
			if err == nil {
				var d time.Duration
				if d, err = parseThrottled(b); err == nil {
					total, told = total+d, true
					continue
				}
			}
			first = cmp.Or(first, err)
		}
	}
	if !told {
		return 0, cmp.Or(first, errors.New("no control group for the CPU is known"))
	}
	return total, nil
}

// parseThrottled takes the throttled time out of cpu.stat: throttled_usec in
// v2, throttled_time in nanoseconds in v1.
func parseThrottled(b []byte) (time.Duration, error) {
	for line := range bytes.Lines(b) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		unit := time.Duration(0)
		switch name {
		case "throttled_usec":
			unit = time.Microsecond
		case "throttled_time":
			unit = time.Nanosecond
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/8/unit) {
			return 0, fmt.Errorf("parse cpu.stat: bad time %q", clip(value))
		}
		return time.Duration(n) * unit, nil
	}
	return 0, errors.New("cpu.stat tells no throttled time")
}
