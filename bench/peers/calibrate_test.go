package main

import (
	"io"
	"testing"
	"time"
)

func TestRoundsFor(t *testing.T) {
	t.Parallel()
	const µs = time.Microsecond
	for _, test := range []struct {
		want, bare, probed time.Duration
		rounds             int
	}{
		{30 * µs, 15 * µs, 30 * µs, 100},
		{30 * µs, 15 * µs, 25 * µs, 150},
		{30 * µs, 30 * µs, 45 * µs, 0},
		{30 * µs, 40 * µs, 90 * µs, 0},
	} {
		rounds, err := roundsFor(test.want, test.bare, test.probed)
		if err != nil || rounds != test.rounds {
			t.Errorf("%+v: %d rounds, %v", test, rounds, err)
		}
	}
	if _, err := roundsFor(30*µs, 15*µs, 15*µs); err == nil {
		t.Error("no error where the work costs nothing")
	}
}

// TestCalibrate checks that the proxy's requests take as long as they should.
func TestCalibrate(t *testing.T) {
	armrepro := needPeers(t)
	tools, err := findTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools.armrepro = armrepro
	const usualFiles = 1024
	s := &session{opts: options{proxyWork: 100 * time.Microsecond}, tools: tools, dir: t.TempDir(), openFiles: usualFiles, stderr: io.Discard}
	if err := s.calibrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cost, err := s.proxyCost(t.Context(), s.rounds)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine moves it, but not to half or double.
	if cost < s.opts.proxyWork/2 || cost > 2*s.opts.proxyWork {
		t.Errorf("a request takes %s, want %s", cost, s.opts.proxyWork)
	}
}
