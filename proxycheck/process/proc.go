package process

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
	"unicode"
)

// Proc is one process.
type Proc struct {
	PID, Parent int
	// Name is the kernel's short name of the process, at most 15 bytes.
	Name string
	// Title is its command line with spaces between the arguments, which is
	// also where a process writes its title ("nginx: worker process"). It
	// is empty for kernel threads and zombies, and where it wasn't asked for.
	Title string
	// Used is the CPU time of the process, in user and kernel mode; Ended is
	// that of its children which have ended and been waited for. Both come in
	// steps of 10 ms.
	Used, Ended time.Duration

	// group is the process group; started is in ticks since the machine's.
	group   int
	started uint64
	state   byte
}

// List lists all processes by ascending pid, without their titles. Those that
// end while the list is made are left out.
func List(root fs.FS) ([]Proc, error) {
	pids, err := processIDs(root)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	procs := make([]Proc, 0, len(pids))
	for _, pid := range pids {
		if p, err := readStat(root, pid); err == nil {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// Children lists the direct children of the process pid that have not ended,
// by ascending pid.
func Children(root fs.FS, pid int) ([]Proc, error) {
	_, err := readStat(root, pid)
	var procs []Proc
	if err == nil {
		procs, err = List(root)
	}
	if err != nil {
		return nil, fmt.Errorf("list children of process %d: %w", pid, err)
	}
	var children []Proc
	for _, p := range procs {
		if p.Parent != pid || p.state == 'Z' || p.state == 'X' {
			continue
		}
		p.Title = title(root, p.PID)
		children = append(children, p)
	}
	return children, nil
}

// Running says whether the process exists and isn't just waiting to be reaped.
// Its first thread can be a zombie while others still end.
func Running(root fs.FS, pid int) bool {
	p, err := readStat(root, pid)
	if err != nil {
		return false
	}
	if p.state != 'Z' && p.state != 'X' {
		return true
	}
	threads, err := fs.ReadDir(root, procPath(pid, "task"))
	return err == nil && len(threads) > 1
}

// PeakRSS is the largest resident memory that the process pid ever had, in
// bytes (VmHWM of /proc/PID/status).
func PeakRSS(root fs.FS, pid int) (uint64, error) {
	n, err := ReadKiB(root, procPath(pid, "status"), "VmHWM")
	if err != nil {
		return 0, fmt.Errorf("read peak memory of process %d: %w", pid, err)
	}
	return n, nil
}

// RSS is the resident memory of the process pid now, in bytes (VmRSS of
// /proc/PID/status).
func RSS(root fs.FS, pid int) (uint64, error) {
	n, err := ReadKiB(root, procPath(pid, "status"), "VmRSS")
	if err != nil {
		return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return n, nil
}

func readStat(root fs.FS, pid int) (Proc, error) {
	b, err := ReadFile(root, procPath(pid, "stat"))
	if err != nil {
		return Proc{}, err
	}
	p, err := parseStat(b)
	p.PID = pid
	return p, err
}

// Tick is the unit of times in /proc: USER_HZ, 100 on every architecture that
// matters here.
const Tick = 10 * time.Millisecond

// parseStat parses /proc/PID/stat (man 5 proc_pid_stat). The name stands in
// parentheses and may hold any byte, parentheses and spaces too.
func parseStat(b []byte) (Proc, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Proc{}, errors.New("parse stat: no name in parentheses")
	}
	fields := bytes.Fields(b[end+1:])
	// fields[0] is field 3 of the manual page, the state.
	const state, parent, group, utime, stime, cutime, cstime, started = 0, 1, 2, 11, 12, 13, 14, 19
	if len(fields) <= started {
		return Proc{}, errors.New("parse stat: too few fields")
	}
	if len(fields[state]) != 1 || !unicode.IsLetter(rune(fields[state][0])) {
		return Proc{}, fmt.Errorf("parse stat: bad state %.40q", fields[state])
	}
	var numbers [started + 1]uint64
	for _, f := range []int{parent, group, utime, stime, cutime, cstime, started} {
		// 38 bits of ticks are 87 years, and four such times fit in a Duration.
		n, err := strconv.ParseUint(string(fields[f]), 10, 38)
		if err != nil {
			return Proc{}, fmt.Errorf("parse stat: field %d: %w", f+3, err)
		}
		numbers[f] = n
	}
	return Proc{
		Name: Clean(string(b[open+1 : end])), state: fields[state][0],
		Parent: int(numbers[parent]), group: int(numbers[group]), started: numbers[started],
		Used:  time.Duration(numbers[utime]+numbers[stime]) * Tick,
		Ended: time.Duration(numbers[cutime]+numbers[cstime]) * Tick,
	}, nil
}

// title is the command line of a process, empty if it has none.
func title(root fs.FS, pid int) string {
	b, err := ReadFile(root, procPath(pid, "cmdline"))
	if err != nil {
		return ""
	}
	return Clean(strings.ReplaceAll(string(b), "\x00", " "))
}

// processIDs lists the processes by ascending pid.
func processIDs(root fs.FS) ([]int, error) { return numbered(root, "proc") }

// numbered lists the entries of a folder that are numbers, in ascending order.
func numbered(root fs.FS, dir string) ([]int, error) {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func procPath(pid int, name string) string {
	return path.Join("proc", strconv.Itoa(pid), name)
}
