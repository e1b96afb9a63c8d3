// Package process is what is known of processes and asked of the kernel about
// them: it starts children that die with this process, reads /proc, finds who
// holds a port, and sets what a process may use. Whatever else starts, watches
// or awaits something is built on it.
//
// What parses text builds everywhere; what asks the kernel is for Linux.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
)

// Defect is what is wrong with a file that is there, as in "the file is empty".
type Defect string

func (d Defect) Error() string { return string(d) }

// ReadFile reads a regular file of at most 8 MiB: a pipe in a recorded tree
// would block for ever.
func ReadFile(root fs.FS, name string) ([]byte, error) { return read(root, name, maxFileBytes) }

// ReadPath is ReadFile for a path of this system.
func ReadPath(path string) ([]byte, error) {
	b, err := ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Path = path
	}
	return b, err
}

func read(root fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(root, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: Defect("not a regular file")}
	case info.Size() > limit: // most of the kernel's files say that they have no size
		return nil, &fs.PathError{Op: "read", Path: name, Err: longer(limit)}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := ReadAll(f, limit)
	if _, is := errors.AsType[Defect](err); is {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// ReadAll reads r, which must not be longer than limit bytes.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, longer(limit)
	}
	return b, err
}

func longer(limit int64) Defect { return Defect(fmt.Sprintf("longer than %d bytes", limit)) }

// ReadLine reads a file that holds one value, such as those of sysfs.
func ReadLine(root fs.FS, name string) (string, error) {
	b, err := read(root, name, maxLineBytes)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = Clean(line); line == "" {
		return "", &fs.PathError{Op: "read", Path: name, Err: Defect("empty")}
	}
	return line, nil
}

// ReadUint reads a file that holds one decimal number.
func ReadUint(root fs.FS, name string) (uint64, error) {
	line, err := ReadLine(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", name, err)
	}
	return n, nil
}

// ReadKiB finds a line "key: 1234 kB" in a file, as /proc/meminfo and
// /proc/PID/status have them, and returns it in bytes.
func ReadKiB(root fs.FS, name, key string) (uint64, error) {
	text, err := ReadField(root, name, key)
	if err != nil {
		return 0, err
	}
	number, isKiB := strings.CutSuffix(text, " kB")
	n, err := strconv.ParseUint(number, 10, 54)
	if err != nil || !isKiB {
		return 0, fmt.Errorf("%s: %s: %.40q is not a number of kB", name, key, text)
	}
	return n << 10, nil
}

// ReadFieldUint reads the number behind a key: the first word there.
func ReadFieldUint(root fs.FS, name, key string) (uint64, error) {
	text, err := ReadField(root, name, key)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(first, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", name, key, err)
	}
	return n, nil
}

// ReadField finds the value behind a key in a file.
func ReadField(root fs.FS, name, key string) (string, error) {
	b, err := ReadFile(root, name)
	if err != nil {
		return "", err
	}
	text, ok := Field(b, key)
	if !ok {
		return "", fmt.Errorf("%s has no %s", name, key)
	}
	return text, nil
}

// Field finds the value of the first line "key: value" or "key value".
func Field(b []byte, key string) (value string, ok bool) {
	for line := range bytes.Lines(b) {
		rest, found := bytes.CutPrefix(line, []byte(key))
		value := bytes.TrimLeft(rest, " \t:\n")
		if found && len(value) < len(rest) {
			return string(bytes.TrimSpace(value)), true
		}
	}
	return "", false
}

// Clean makes foreign text fit for a terminal and for JSON: valid UTF-8,
// without control characters, one space between words, none at the ends.
func Clean(s string) string {
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

// Reason says in a few words why a file told nothing.
func Reason(err error) string {
	var path *fs.PathError
	name, known := "", errors.As(err, &path)
	if known {
		name = path.Path + " "
	}
	switch defect, is := errors.AsType[Defect](err); {
	case errors.Is(err, fs.ErrNotExist):
		return name + "is not there"
	case errors.Is(err, fs.ErrPermission):
		return name + "may not be read by this user"
	case !known:
		return err.Error()
	case is:
		return name + "is " + defect.Error()
	}
	return name + "is unreadable: " + path.Err.Error()
}
