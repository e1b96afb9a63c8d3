package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Proc is one process.
type Proc struct {
	PID, Parent int
	// Name is the kernel's short name of the process, at most 15 bytes.
	Name string
	// Title is its command line with spaces between the arguments, which is
	// also where a process writes its title ("nginx: worker process"). It
	// is empty for kernel threads and zombies.
	Title string
}

// Children lists the direct children of the process pid that have not ended,
// by ascending pid. Processes that end while the list is made are left out.
func Children(root fs.FS, pid int) ([]Proc, error) {
	if _, err := readStat(root, pid); err != nil {
		return nil, fmt.Errorf("list children of process %d: %w", pid, err)
	}
	pids, err := processIDs(root)
	if err != nil {
		return nil, fmt.Errorf("list children of process %d: %w", pid, err)
	}
	var children []Proc
	for _, id := range pids {
		stat, err := readStat(root, id)
		if err != nil || stat.parent != pid || stat.state == 'Z' || stat.state == 'X' {
			continue
		}
		children = append(children, Proc{PID: id, Parent: pid, Name: stat.name, Title: title(root, id)})
	}
	return children, nil
}

// PeakRSS is the largest resident memory that the process pid ever had, in
// bytes (VmHWM of /proc/PID/status).
func PeakRSS(root fs.FS, pid int) (uint64, error) {
	b, err := readFile(root, procPath(pid, "status"))
	if err != nil {
		return 0, fmt.Errorf("read peak memory of process %d: %w", pid, err)
	}
	for key, value := range keyValues(b) {
		if key != "VmHWM" {
			continue
		}
		n, err := kibibytes(value)
		if err != nil {
			return 0, fmt.Errorf("read peak memory of process %d: %w", pid, err)
		}
		return n, nil
	}
	return 0, fmt.Errorf("read peak memory of process %d: no VmHWM, it has no memory of its own", pid)
}

// processStat is what /proc/PID/stat tells that is needed here.
type processStat struct {
	name   string
	state  byte
	parent int
	// Ticks of 1/100 s, in user and kernel mode, of the process and of
	// its children that were waited for.
	ticks, childTicks uint64
}

func readStat(root fs.FS, pid int) (processStat, error) {
	b, err := readBounded(root, procPath(pid, "stat"), maxLineBytes)
	if err != nil {
		return processStat{}, err
	}
	return parseStat(b)
}

// parseStat parses /proc/PID/stat (man 5 proc_pid_stat). The name stands in
// parentheses and may hold any byte, parentheses and spaces too.
func parseStat(b []byte) (processStat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return processStat{}, errors.New("parse stat: no name in parentheses")
	}
	fields := bytes.Fields(b[end+1:])
	// fields[0] is field 3 of the manual page, the state.
	const state, parent, utime, stime, cutime, cstime = 0, 1, 11, 12, 13, 14
	if len(fields) <= cstime {
		return processStat{}, errors.New("parse stat: too few fields")
	}
	if len(fields[state]) != 1 || !unicode.IsLetter(rune(fields[state][0])) {
		return processStat{}, fmt.Errorf("parse stat: bad state %q", clip(string(fields[state])))
	}
	s := processStat{name: clean(string(b[open+1 : end])), state: fields[state][0]}
	var err error
	if s.parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return processStat{}, fmt.Errorf("parse stat: parent: %w", err)
	}
	var ticks [4]uint64
	// 38 bits of ticks are 87 years, and four such times fit in a Duration.
	for i, f := range []int{utime, stime, cutime, cstime} {
		if ticks[i], err = strconv.ParseUint(string(fields[f]), 10, 38); err != nil {
			return processStat{}, fmt.Errorf("parse stat: times: %w", err)
		}
	}
	s.ticks, s.childTicks = ticks[0]+ticks[1], ticks[2]+ticks[3]
	return s, nil
}

// title is the command line of a process, empty if it has none.
func title(root fs.FS, pid int) string {
	b, err := readBounded(root, procPath(pid, "cmdline"), maxFileBytes)
	if err != nil {
		return ""
	}
	return clean(strings.ReplaceAll(string(b), "\x00", " "))
}

// processIDs lists the processes by ascending pid.
func processIDs(root fs.FS) ([]int, error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

func procPath(pid int, name string) string {
	return path.Join("proc", strconv.Itoa(pid), name)
}
