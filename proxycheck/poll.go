package proxycheck

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollEvery is the time between two looks at something awaited. It bounds how
// late an event is seen; most take 20 to 700 ms.
const pollEvery = 20 * time.Millisecond

// poll calls try until it returns nil or ctx ends, and then says what the last
// try said. An error that try marks with permanent ends it at once.
func poll(ctx context.Context, try func() error) error {
	return pollInterval(ctx, pollEvery, try)
}

func pollInterval(ctx context.Context, every time.Duration, try func() error) error {
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
			return &timeoutError{cause: context.Cause(ctx), last: last}
		case <-ticker.C:
		}
	}
}

// permanentError is one that more tries won't change.
type permanentError struct{ error }

func permanent(err error) error { return &permanentError{err} }

// timeoutError says what was awaited in vain. It unwraps to both the reason
// that the wait ended and the last try's error, with its hint.
type timeoutError struct{ cause, last error }

func (e *timeoutError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return fmt.Sprintf("not in time: %v", e.last)
	}
	return fmt.Sprintf("%v: %v", e.cause, e.last)
}

func (e *timeoutError) Unwrap() []error { return []error{e.cause, e.last} }
