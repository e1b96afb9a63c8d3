package machine

import (
	"os"
	"testing"
	"time"
)

// The tests in this file look at the system they run on.
var live = os.DirFS("/")

func TestDetectLive(t *testing.T) {
	t.Parallel()
	m, evidence := Detect(live, Options{Live: LiveFacts()})
	if m.Kernel == "" || m.Cores < 1 || m.MemoryBytes < 1<<26 || m.PageSize != os.Getpagesize() {
		t.Errorf("Detect = %+v", m)
	}
	if len(evidence) == 0 {
		t.Error("no evidence")
	}
}

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		Detect(live, Options{Live: LiveFacts()})
	}
}

func TestMeasureMHz(t *testing.T) {
	t.Parallel()
	start := time.Now()
	mhz := MeasureMHz()
	if mhz < 200 || mhz > 10_000 {
		t.Errorf("MeasureMHz = %.0f", mhz)
	}
	t.Logf("%.0f MHz in %s", mhz, time.Since(start))
}
