package machine

import (
	"bytes"
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

// ControlGroup is a control group that a process is in: the folder of the group
// and the folder that its hierarchy is mounted on. The limits of every group
// between the two hold as well.
type ControlGroup struct {
	dir, mount string
	// V2 says that the group is of the unified hierarchy.
	V2 bool
}

// GroupOf finds the control group that a controller, cpu or memory, puts a
// process in; pid is a number or self. The error says why none could be found.
func GroupOf(root fs.FS, pid, controller string) (ControlGroup, error) {
	b, err := process.ReadFile(root, path.Join("proc", pid, "cgroup"))
	if err != nil {
		return ControlGroup{}, err
	}
	v1, v2 := parseCgroup(b, controller)
	mounts, err := process.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return ControlGroup{}, err
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
	return ControlGroup{}, fmt.Errorf("no control group for the %s is mounted", controller)
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
		if slices.Contains(strings.Split(parts[1], ","), controller) {
			v1 = parts[2]
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
		if controller != "" && !slices.Contains(strings.Split(super[2], ","), controller) {
			continue
		}
		return cgroupMount{root: unescape(fields[3]), point: unescape(fields[4])}, true
	}
	return cgroupMount{}, false
}

// unescape undoes the kernel's octal escapes of white space in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// group is where under the mount point the group of a process is.
func (m cgroupMount) group(name string, v2 bool) ControlGroup {
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
	return ControlGroup{dir: path.Join(mount, path.Clean("/"+within)), mount: mount, V2: v2}
}

// quota is the least CPU time in cores that the group and those above it may
// use, and what says so; not by its path, in which the names of groups are often
// ids. Infinity means no limit; it is an error if a limit that cannot be read may
// be the least.
func (g ControlGroup) quota(root fs.FS) (cores float64, source string, err error) {
	cores = math.Inf(1)
	for level, dir := range g.Upwards() {
		name, read := path.Join(dir, "cpu.max"), readQuotaV2
		if !g.V2 {
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

// Upwards lists the folders from the group's to the mount point's.
func (g ControlGroup) Upwards() []string {
	dirs := []string{g.dir}
	for dir := g.dir; dir != g.mount && dir != "." && dir != "/"; {
		dir = path.Dir(dir)
		dirs = append(dirs, dir)
	}
	return dirs
}

// readQuotaV2 reads cpu.max: "max 100000" or "150000 100000".
func readQuotaV2(root fs.FS, name string) (float64, error) {
	line, err := process.ReadLine(root, name)
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
	quota, err := process.ReadLine(root, name)
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(quota, "-") {
		return math.Inf(1), nil
	}
	period, err := process.ReadLine(root, path.Join(path.Dir(name), "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return coresOf(quota, period)
}

func coresOf(quota, period string) (float64, error) {
	q, err := strconv.ParseUint(quota, 10, 48)
	if err != nil || q == 0 {
		return 0, fmt.Errorf("bad quota %.40q", quota)
	}
	p, err := strconv.ParseUint(period, 10, 48)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("bad period %.40q", period)
	}
	return float64(q) / float64(p), nil
}
