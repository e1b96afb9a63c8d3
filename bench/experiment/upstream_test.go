package experiment

import (
	"testing"
)

func TestAnswered(t *testing.T) {
	t.Parallel()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	var n uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		ServeControl(theirs, func() uint64 { n += 7; return n })
	}()
	for _, want := range []uint64{7, 14} {
		if got, err := askAnswered(ours); err != nil || got != want {
			t.Errorf("%d answers, %v; want %d", got, err, want)
		}
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if _, err := askAnswered(ours); err == nil {
		t.Error("a closed connection has answered")
	}
}
