package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Poll calls try until it returns nil or ctx ends, and then says what the last
// try said. An error that try marks with Permanent ends it at once. The pause
// every bounds how late a success is seen.
func Poll(ctx context.Context, every time.Duration, try func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if p, ok := errors.AsType[*permanentError](err); ok {
			return p.error
		}
		// A try that was cut off says less than the one before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return Late(ctx, last)
		case <-ticker.C:
		}
	}
}

// Permanent marks an error that more tries won't change.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ error }

// Late says what was awaited in vain until ctx ended. The error unwraps to both
// the cause of that end and last, with its hint.
func Late(ctx context.Context, last error) error {
	return &lateError{cause: context.Cause(ctx), last: last}
}

type lateError struct{ cause, last error }

func (e *lateError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return fmt.Sprintf("not in time: %v", e.last)
	}
	return fmt.Sprintf("%v: %v", e.cause, e.last)
}

func (e *lateError) Unwrap() []error { return []error{e.cause, e.last} }
