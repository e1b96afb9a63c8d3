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

func (e *LeftBehind) Error() string {
	names := make([]string, len(e.Left))
	for i, l := range e.Left {
		names[i] = l.What
	}
	return fmt.Sprintf("remove %s: %v", strings.Join(names, ", "), e.Err)
}

func (e *LeftBehind) Unwrap() error { return e.Err }

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
