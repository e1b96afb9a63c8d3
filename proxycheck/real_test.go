package proxycheck

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestRealAPISIX drives the APISIX that is installed on this machine, or the one
// that PATH leads to. It needs one, so it runs only where it is asked for.
func TestRealAPISIX(t *testing.T) {
	if os.Getenv("ARMREPRO_REAL_APISIX") == "" {
		t.Skip("set ARMREPRO_REAL_APISIX=1 to drive the APISIX of this machine")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	inst, err := Find(ctx, FindConfig{})
	if err != nil {
		t.Fatalf("%v\n%s", err, Hint(err))
	}
	t.Logf("found %+v", *inst)
	before := checksums(t, inst.Home)

	began := time.Now()
	gw, err := StartNative(ctx, NativeConfig{
		Install: inst,
		Etcd:    []string{startEtcd(t)},
		Ports:   freePorts(t),
		Logger:  zerolog.New(zerolog.NewTestWriter(t)),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, Hint(err))
	}
	defer gw.Close()
	t.Logf("started in %s, %d plugins", time.Since(began), len(gw.Info().Plugins))

	upstream := startUpstream(t)
	for _, r := range []Route{plainRoute(upstream), pluginRoute(upstream), plainRoute(upstream)} {
		began := time.Now()
		if err := gw.Apply(ctx, r); err != nil {
			t.Fatalf("%v\n%s", err, Hint(err))
		}
		t.Logf("applied a route with metric %q in %s", r.Metric, time.Since(began))
	}
	pids, err := gw.Workers()
	if err != nil || len(pids) != 1 {
		t.Fatalf("workers: %v, %v", pids, err)
	}
	began = time.Now()
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(began))
	if running(pids[0]) {
		t.Errorf("worker %d is alive after Close", pids[0])
	}
	sameChecksums(t, before, checksums(t, inst.Home))
}
