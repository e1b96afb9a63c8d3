package process

import (
	"errors"
	"fmt"
)

// HintError is an error with a line for the user on what to do about it.
type HintError struct {
	Err    error
	Advice string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }
func (e *HintError) Hint() string  { return e.Advice }

// Hintf is the formatted error with the hint.
func Hintf(hint, format string, args ...any) error {
	return &HintError{Err: fmt.Errorf(format, args...), Advice: hint}
}

// WithHint adds the hint to err, if there are both.
func WithHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	return &HintError{Err: err, Advice: hint}
}

// Hint returns the advice that err carries, or the empty string.
func Hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
