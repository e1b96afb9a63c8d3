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
	"io"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFileBytes bounds what is read of a file. The kernel's own stay far below
// it, but a command line is what a process made of it.
const maxFileBytes = 8 << 20

// readFile reads a regular file, at most maxFileBytes of it: a pipe in a recorded
// tree would block for ever.
func readFile(root fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes))
}

// value finds a value in "key: value" lines, such as those of /proc/PID/status.
func value(b []byte, key string) (string, bool) {
	for line := range bytes.Lines(b) {
		k, v, ok := bytes.Cut(line, []byte{':'})
		if ok && string(k) == key {
			return string(bytes.TrimSpace(v)), true
		}
	}
	return "", false
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

// clip shortens text for an error message.
func clip(s string) string {
	const most = 40
	s = clean(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
