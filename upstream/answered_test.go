package upstream

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestAnswered counts what several loops and listeners answered, whatever the
// answer says.
func TestAnswered(t *testing.T) {
	t.Parallel()
	s, err := Start(context.Background(), Config{Listen: []string{"127.0.0.1:0", "127.0.0.2:0"}, Loops: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const get = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
	var want uint64
	for _, request := range []struct {
		text    string
		answers uint64
	}{
		{get, 1},
		{strings.Repeat(get, 7), 7},
		{"POST /anything HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", 1},
		{"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		{"GET /half HTTP/1.1\r\n", 0},
		{"", 0},
	} {
		for range 5 {
			for _, address := range s.Addrs() {
				conn := dial(t, address)
				write(t, conn, request.text)
				want += request.answers
			}
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); s.Answered() < want && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if got := s.Answered(); got != want {
		t.Errorf("%d answers, want %d", got, want)
	}
	if err := s.Close(); err != nil || s.Answered() != want {
		t.Errorf("%d answers after Close (%v), want %d", s.Answered(), err, want)
	}
}
