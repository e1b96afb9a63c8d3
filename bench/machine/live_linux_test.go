package machine

import (
	"os"
	"testing"
)

// The tests in this file look at the system they run on.
var live = os.DirFS("/")

func TestDetectLive(t *testing.T) {
	t.Parallel()
	m, evidence := Detect(live, LiveFacts(false))
	if m.Kernel == "" || m.Cores < 1 || m.MemoryBytes < 1<<26 || m.PageSize != os.Getpagesize() {
		t.Errorf("Detect = %+v", m)
	}
	if len(evidence) == 0 {
		t.Error("no evidence")
	}
}

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		Detect(live, LiveFacts(false))
	}
}

func TestMeasureMHz(t *testing.T) {
	t.Parallel()
	// A busy machine makes it less, nothing makes it more.
	if mhz := MeasureMHz(); mhz <= 0 || mhz > 10_000 {
		t.Errorf("MeasureMHz = %.0f", mhz)
	}
}
