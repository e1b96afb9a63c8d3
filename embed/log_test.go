package embed

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
)

// TestFatalEntry is what a full disk does to etcd: its goroutine ends, this
// process does not.
func TestFatalEntry(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]func(*zap.Logger){
		"fatal": func(l *zap.Logger) { l.Fatal("failed to commit tx", zap.Error(syscall.ENOSPC)) },
		"panic": func(l *zap.Logger) { l.Panic("failed to commit tx", zap.Error(syscall.ENOSPC)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan error, 1)
			log := newLog(zerolog.Nop(), func(err error) { got <- err })
			ended := make(chan bool)
			go func() {
				defer close(ended)
				entry(log)
				ended <- false
			}()
			if _, survived := <-ended; survived {
				t.Error("the goroutine went on")
			}
			want := "etcd failed for good: failed to commit tx: " + syscall.ENOSPC.Error()
			if err := <-got; err.Error() != want {
				t.Errorf("reported %q, want %q", err, want)
			}
		})
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var quiet, loud lockedBuffer
	a := startTest(t, Config{Logger: zerolog.New(&quiet).Level(zerolog.InfoLevel)})
	b := startTest(t, Config{Logger: zerolog.New(&loud).Level(zerolog.DebugLevel)})
	for _, s := range []*Server{a, b} {
		put(t, s, "k", "v")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := quiet.String(); got != "" {
		t.Errorf("logged above debug:\n%s", got)
	}
	if got := loud.String(); !strings.Contains(got, "ready to serve client requests") {
		t.Errorf("logged at debug:\n%s", got)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
