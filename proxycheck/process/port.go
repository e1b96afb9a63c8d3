package process

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Holder is a process that listens on a port.
type Holder struct {
	// PID is 0 where the process cannot be seen.
	PID  int
	Name string
	// CommandLine has spaces between the arguments, and no secrets.
	CommandLine string
}

// String names the holder for an error message.
func (h *Holder) String() string {
	if h.PID == 0 {
		return h.Name
	}
	return fmt.Sprintf("process %d (%s)", h.PID, cmp.Or(h.CommandLine, h.Name))
}

const unknownHolder = "unknown process (run as root to see)"

// Listeners lists every process that has a listening socket on a TCP port:
// parents before their children, then by pid. With SO_REUSEPORT several
// unrelated processes can be among them. A socket whose owner cannot be seen
// adds one Holder without a PID.
func Listeners(root fs.FS, port int) ([]Holder, error) {
	inodes, err := listeningInodes(root, port)
	if err != nil {
		return nil, fmt.Errorf("find who listens on port %d: %w", port, err)
	}
	if len(inodes) == 0 {
		return nil, nil
	}
	pids, seen, err := socketOwners(root, inodes)
	if err != nil {
		return nil, fmt.Errorf("find who listens on port %d: %w", port, err)
	}
	holders := describe(root, pids)
	if len(seen) < len(inodes) {
		holders = append(holders, Holder{Name: unknownHolder})
	}
	return holders, nil
}

// listeningInodes collects the inodes of the sockets that listen on port.
func listeningInodes(root fs.FS, port int) (map[string]bool, error) {
	inodes := map[string]bool{}
	found := 0
	for _, name := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6 has no tcp6
		}
		if err != nil {
			return nil, err
		}
		found++
		// The kernel lists listening sockets first, so whatever lies
		// beyond the bound are connections.
		err = parseListeners(io.LimitReader(f, maxFileBytes), port, inodes)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if found == 0 {
		return nil, &fs.PathError{Op: "read", Path: "proc/net/tcp", Err: fs.ErrNotExist}
	}
	return inodes, nil
}

// parseListeners reads lines of /proc/net/tcp or tcp6 and adds the inodes of
// sockets in state LISTEN on port.
func parseListeners(r io.Reader, port int, inodes map[string]bool) error {
	const local, state, inode = 1, 3, 9
	const listen = "0A"
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLineBytes), maxLineBytes)
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) <= inode || string(fields[state]) != listen {
			continue
		}
		_, hex, ok := strings.Cut(string(fields[local]), ":")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
			inodes[string(fields[inode])] = true
		}
	}
	return lines.Err()
}

// socketOwners finds the processes that have a descriptor of any of the
// sockets, and the inodes that were found at all. Processes of other users
// show their descriptors to root only.
func socketOwners(root fs.FS, inodes map[string]bool) (owners []int, seen map[string]bool, err error) {
	pids, err := processIDs(root)
	if err != nil {
		return nil, nil, err
	}
	seen = map[string]bool{}
	for _, pid := range pids {
		dir := procPath(pid, "fd")
		entries, err := fs.ReadDir(root, dir)
		if err != nil {
			continue
		}
		owns := false
		for _, e := range entries {
			link, err := fs.ReadLink(root, path.Join(dir, e.Name()))
			if err != nil {
				continue
			}
			inode, ok := strings.CutPrefix(link, "socket:[")
			inode = strings.TrimSuffix(inode, "]")
			if ok && inodes[inode] {
				seen[inode], owns = true, true
			}
		}
		if owns {
			owners = append(owners, pid)
		}
	}
	return owners, seen, nil
}

// describe names processes, parents before the children among them.
func describe(root fs.FS, pids []int) []Holder {
	var first, rest []Holder
	for _, pid := range pids {
		stat, err := readStat(root, pid)
		h := Holder{PID: pid, Name: stat.Name, CommandLine: WithoutSecrets(title(root, pid))}
		if err == nil && slices.Contains(pids, stat.Parent) {
			rest = append(rest, h)
		} else {
			first = append(first, h)
		}
	}
	return append(first, rest...)
}
