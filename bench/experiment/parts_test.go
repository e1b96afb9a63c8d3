package experiment

import (
	"errors"
	"testing"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

func TestCheckParts(t *testing.T) {
	t.Parallel()
	installed := &gatewayPlan{kind: Native, install: &proxycheck.Install{}}
	for _, tt := range []struct {
		name string
		plan *gatewayPlan
		cfg  Config
		ok   bool
	}{
		{"nothing asked for", &gatewayPlan{kind: Attach}, Config{}, true},
		{"native", installed, Config{EmptyProxy: true, Settings: bench.Settings{Scaling: []int{2}}}, true},
		{"workers of somebody else's gateway", &gatewayPlan{kind: Attach}, Config{Settings: bench.Settings{Scaling: []int{2}}}, false},
		{"restarts of somebody else's gateway", &gatewayPlan{kind: Attach}, Config{Settings: bench.Settings{Restarts: 2}}, false},
		{"restarts", installed, Config{Settings: bench.Settings{Precision: 0.03}}, true},
		{"no OpenResty", &gatewayPlan{kind: Builtin}, Config{EmptyProxy: true}, false},
		{"fewer CPUs than workers", installed, Config{Pin: "0", Settings: bench.Settings{Scaling: []int{2}}}, false},
	} {
		if tt.cfg.Pin == "" {
			tt.cfg.Pin = fitness.PinAuto
		}
		c := &conductor{cfg: tt.cfg, fit: &watcher{cpus: []int{0, 1}}}
		err := c.checkParts(tt.plan)
		if (err == nil) != tt.ok {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if _, pin := errors.AsType[*PinError](err); err != nil && !pin && process.Hint(err) == "" {
			t.Errorf("%s: no hint with %v", tt.name, err)
		}
	}
}
