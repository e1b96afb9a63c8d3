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
	defer ours.Close()
	var n uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		ServeControl(theirs, func() uint64 { n += 7; return n })
	}()
	c := &conductor{control: ours}
	for _, want := range []uint64{7, 14} {
		if got, err := c.answered(); err != nil || got != want {
			t.Errorf("%d answers, %v; want %d", got, err, want)
		}
	}
	theirs.Close()
	<-done
	if _, err := c.answered(); err == nil {
		t.Error("an upstream that has gone has answered")
	}
}
