package cli

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"syscall"
)

// stream is where output goes. A reader that has gone, as head does, wants no more:
// what is written then is dropped, and is no error. Any other error is returned, and
// kept for those who do not look at it.
type stream struct {
	io.Writer
	mu   sync.Mutex
	gone bool
	err  error
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		s.gone = true
		return len(b), nil
	}
	s.err = cmp.Or(s.err, err)
	return n, err
}

// state says whether the reader has gone, and what kept anything else from being
// written.
func (s *stream) state() (gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone, s.err
}
