package process

import (
	"errors"
	"fmt"
	"strings"
)

// LeftBehind is the error of having been unable to take something away again.
type LeftBehind struct {
	Left []Left
	// Err is why.
	Err error
}

// Left is something that is left behind.
type Left struct {
	// What names it, such as "folder /tmp/x"; How is a command that removes
	// it, to be typed as it is. A key in it is named by its variable.
	What, How string
}

// Because is the error that it could not be removed.
func (l Left) Because(err error) error { return &LeftBehind{Left: []Left{l}, Err: err} }

func (e *LeftBehind) Error() string {
	names := make([]string, len(e.Left))
	for i, l := range e.Left {
		names[i] = l.What
	}
	return fmt.Sprintf("remove %s: %v", strings.Join(names, ", "), e.Err)
}

func (e *LeftBehind) Unwrap() error { return e.Err }

func leftProcesses(err error, pids ...int) error {
	e := &LeftBehind{Err: err}
	for _, pid := range pids {
		e.Left = append(e.Left, Left{What: fmt.Sprintf("process %d", pid), How: fmt.Sprintf("kill -9 %d", pid)})
	}
	return e
}

// CommandLine is a command to be typed in a shell.
func CommandLine(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if arg == "" || strings.ContainsFunc(arg, meansSomething) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// meansSomething says whether a shell may read r as more than itself.
func meansSomething(r rune) bool {
	plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+@:,=%", r)
	return !plain
}

// AllLeft collects what every *LeftBehind that err holds lists.
func AllLeft(err error) []Left {
	if e, ok := errors.AsType[*LeftBehind](err); ok && error(e) == err {
		return e.Left
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return AllLeft(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []Left
		for _, err := range e.Unwrap() {
			all = append(all, AllLeft(err)...)
		}
		return all
	}
	return nil
}
