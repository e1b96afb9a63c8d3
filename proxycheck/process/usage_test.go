package process

import (
	"testing"
	"time"
)

func TestCPUTime(t *testing.T) {
	t.Parallel()
	p, err := Start(Config{Path: "/bin/sh", Args: []string{"-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	<-p.Done()
	if used := p.CPUTime(); used < time.Millisecond || used > time.Since(begin)+time.Second {
		t.Errorf("20000 rounds of a shell took %s", used)
	}
}
