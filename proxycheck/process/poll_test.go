package process

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPoll(t *testing.T) {
	t.Parallel()
	tries := 0
	err := Poll(t.Context(), time.Millisecond, func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}

	tries = 0
	final := errors.New("never")
	err = Poll(t.Context(), time.Millisecond, func() error { tries++; return Permanent(final) })
	if err != final || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	first := true
	err = Poll(ctx, time.Millisecond, func() error {
		if first {
			first = false
			return final
		}
		<-ctx.Done()
		return ctx.Err() // a request that was cut off
	})
	if err == nil || err.Error() != "not in time: never" || !errors.Is(err, final) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
