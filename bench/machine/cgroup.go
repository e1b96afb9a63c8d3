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
	groups, err := process.ReadFile(root, path.Join("proc", pid, "cgroup"))
	if err != nil {
		return ControlGroup{}, err
	}
	mounts, err := process.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return ControlGroup{}, err
	}
	if g, ok := findGroup(mounts, groupIn(groups, controller), "cgroup", controller); ok {
		return g, nil
	}
	if g, ok := findGroup(mounts, groupIn(groups, ""), "cgroup2", ""); ok {
		return g, nil
	}
	return ControlGroup{}, fmt.Errorf("no control group for the %s is mounted", controller)
}

// groupIn is the group in /proc/PID/cgroup of the hierarchy with this controller; v2's
// has none.
func groupIn(b []byte, controller string) (group string) {
	for line := range bytes.Lines(b) {
		parts := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(parts) == 3 && strings.HasPrefix(parts[2], "/") && slices.Contains(strings.Split(parts[1], ","), controller) {
			group = parts[2]
		}
	}
	return group
}

// escapes are the kernel's octal ones of white space in mountinfo.
var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// findGroup finds a group in the first hierarchy of /proc/PID/mountinfo (man 5
// proc_pid_mountinfo) that has this type and, for v1, this controller.
func findGroup(mounts []byte, group, fsType, controller string) (ControlGroup, bool) {
	for line := range bytes.Lines(mounts) {
		before, after, _ := strings.Cut(string(line), " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if group == "" || len(fields) < 5 || len(super) < 3 || super[0] != fsType ||
			controller != "" && !slices.Contains(strings.Split(super[2], ","), controller) {
			continue
		}
		// The top one that is mounted: inside a container that is the container's own.
		top, mount := escapes.Replace(fields[3]), strings.TrimPrefix(path.Clean(escapes.Replace(fields[4])), "/")
		within, ok := strings.CutPrefix(group, strings.TrimSuffix(top, "/"))
		if !ok || within != "" && within[0] != '/' {
			within = "" // a group outside of what is mounted here
		}
		// A group beyond the namespace's top shows as /../…; Clean keeps it in.
		return ControlGroup{dir: path.Join(mount, path.Clean("/"+within)), mount: mount, V2: fsType == "cgroup2"}, true
	}
	return ControlGroup{}, false
}

// quota is the least CPU time in cores that the group and those above it may
// use, and what says so; not by its path, in which the names of groups are often
// ids. Infinity means no limit; it is an error if a limit that cannot be read may
// be the least.
func (g ControlGroup) quota(root fs.FS) (cores float64, source string, err error) {
	cores = math.Inf(1)
	for level, dir := range g.Upwards() {
		q, name, qerr := g.quotaOf(root, dir)
		switch {
		case errors.Is(qerr, fs.ErrNotExist): // the root of the hierarchy has no such file
		case qerr != nil && err == nil:
			if p, ok := errors.AsType[*fs.PathError](qerr); ok {
				qerr = p.Err // without the path
			}
			err = fmt.Errorf("%s: %w", groupFile(name, level), qerr)
		case qerr == nil && q < cores:
			cores, source = q, groupFile(name, level)
		}
	}
	if err != nil && math.IsInf(cores, 1) {
		return 0, "", err
	}
	return cores, source, nil
}

// quotaOf reads the quota of one group, and names its file: cpu.max, "max 100000" or
// "150000 100000", or in v1 cpu.cfs_quota_us, -1 for no limit, with the period beside
// it.
func (g ControlGroup) quotaOf(root fs.FS, dir string) (cores float64, name string, err error) {
	if name = "cpu.max"; !g.V2 {
		name = "cpu.cfs_quota_us"
	}
	line, err := process.ReadLine(root, path.Join(dir, name))
	quota, period, _ := strings.Cut(line, " ")
	if !g.V2 && err == nil {
		period, err = process.ReadLine(root, path.Join(dir, "cpu.cfs_period_us"))
	}
	q, quotaErr := strconv.ParseUint(quota, 10, 48)
	p, periodErr := strconv.ParseUint(period, 10, 48)
	switch {
	case quota == "max" || strings.HasPrefix(quota, "-"):
		return math.Inf(1), name, nil
	case err != nil:
		return 0, name, err
	case quotaErr != nil || q == 0:
		return 0, name, fmt.Errorf("bad quota %.40q", quota)
	case periodErr != nil || p == 0:
		return 0, name, fmt.Errorf("bad period %.40q", period)
	}
	return float64(q) / float64(p), name, nil
}

// groupFile names a file of the control group so many levels up.
func groupFile(name string, level int) string {
	above := ""
	if level == 1 {
		above = "above that "
	} else if level > 1 {
		above = fmt.Sprintf("%d levels above that ", level)
	}
	return name + " of the control group " + above + "of this process"
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
