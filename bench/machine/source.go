package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what is read. The kernel's own files stay far below them; a
// recorded tree may hold anything.
const (
	maxFileBytes = 8 << 20
	maxLineBytes = 4 << 10
	// maxCPUs is above the largest NR_CPUS that the kernel can be built with.
	maxCPUs = 8192
)

var (
	errTooLarge   = errors.New("larger than the kernel writes it")
	errNotRegular = errors.New("not a regular file")
	errEmpty      = errors.New("empty")
	// What is in a file although a name should be.
	errNameTooLong = errors.New("longer than a name")
	errIdentifying = errors.New("like a serial number or an id, and not shown")
)

// readFile reads a whole file, at most maxFileBytes of it. Only regular files
// are opened: a pipe in a recorded tree would block for ever.
func readFile(root fs.FS, name string) ([]byte, error) {
	return readBounded(root, name, maxFileBytes)
}

func readBounded(root fs.FS, name string, limit int64) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	return b, nil
}

func openRegular(root fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	return root.Open(name)
}

// readLine reads a file that holds one value, such as those of sysfs.
func readLine(root fs.FS, name string) (string, error) {
	b, err := readBounded(root, name, maxLineBytes)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = clean(line)
	if line == "" {
		return "", &fs.PathError{Op: "read", Path: name, Err: errEmpty}
	}
	return line, nil
}

// maxNameBytes is longer than any name of a product, a system or a machine type.
const maxNameBytes = 96

// identifying matches what tells one machine from all others: serial numbers,
// uuids, the ids of instances.
var identifying = regexp.MustCompile(`(?i)^i-|serial|\bs/?n\b|\bi-([0-9a-f]{8,}|[0-9a-z]{16,})|\bocid1\.|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12,}`)

func identifies(s string) bool { return identifying.MatchString(s) }

// checkName says why text, which is foreign, is not shown as a name.
func checkName(text string) error {
	switch {
	case len(text) > maxNameBytes:
		return errNameTooLong
	case identifies(text):
		return errIdentifying
	}
	return nil
}

// readName reads a file that holds one name which is going to be shown.
func readName(root fs.FS, name string) (string, error) {
	line, err := readLine(root, name)
	if err != nil {
		return "", err
	}
	if err := checkName(line); err != nil {
		return "", &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return line, nil
}

// readUint reads a file that holds one decimal number.
func readUint(root fs.FS, name string) (uint64, error) {
	line, err := readLine(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", name, err)
	}
	return n, nil
}

// clean makes foreign text fit for a terminal and for JSON: valid UTF-8,
// without control characters, one space between words, none at the ends.
func clean(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// reason says in a few words why a file told nothing.
func reason(err error) string {
	var path *fs.PathError
	name := ""
	if errors.As(err, &path) {
		name = path.Path + " "
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name + "is not there"
	case errors.Is(err, fs.ErrPermission):
		return name + "may not be read by this user"
	case path == nil:
		return err.Error()
	case slices.Contains([]error{errTooLarge, errNotRegular, errEmpty, errNameTooLong, errIdentifying}, path.Err):
		return name + "is " + path.Err.Error()
	}
	return name + "is unreadable: " + path.Err.Error()
}

// clip shortens text for an error message.
func clip(s string) string {
	const most = 40
	s = clean(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// keyValues splits "key: value" lines, such as those of /proc/PID/status.
func keyValues(b []byte) func(yield func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		for line := range bytes.Lines(b) {
			key, value, ok := bytes.Cut(line, []byte{':'})
			if !ok {
				continue
			}
			if !yield(string(bytes.TrimSpace(key)), string(bytes.TrimSpace(value))) {
				return
			}
		}
	}
}

// kibibytes parses "1234 kB", as /proc/meminfo and /proc/PID/status have it,
// into bytes.
func kibibytes(s string) (uint64, error) {
	number, unit, _ := strings.Cut(s, " ")
	n, err := strconv.ParseUint(number, 10, 54)
	if err != nil || strings.TrimSpace(unit) != "kB" {
		return 0, fmt.Errorf("%q is not a number of kB", clip(s))
	}
	return n << 10, nil
}
