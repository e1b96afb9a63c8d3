package apisixtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// FaultEnv overrides the fault that Install was given, for tests that can only
// set the environment.
const FaultEnv = "ARMREPRO_FAKE_APISIX_FAULT"

// faultFile holds the fault beside the programs of an install.
const faultFile = "fault"

// Faults are ways to fail. Their text form is a list such as
// "slow-start=2s,workers=3".
type Faults struct {
	// HangInit and HangInitEtcd make those commands never end.
	HangInit, HangInitEtcd bool
	// SlowStart is how long the master waits before it opens its ports.
	SlowStart time.Duration
	// MissingModule makes the master end over a Lua module that is missing.
	MissingModule bool
	// Workers replaces the number of worker processes.
	Workers int
	// CrashEvery makes each worker end after that time, to be replaced.
	CrashEvery time.Duration
	// StopDelay is how long the master lives on after SIGTERM.
	StopDelay time.Duration
	// BindWait is the time between attempts to bind; nginx's is 500 ms.
	BindWait time.Duration
	// MetricsEvery is the time between two computations of the metrics.
	MetricsEvery time.Duration
	// AdminStatus is what every request to the Admin API is answered with.
	AdminStatus int
	// NotFound is how many requests of a route each worker answers 404, as
	// one does that has not learnt of it.
	NotFound int
}

func parseFaults(text string) (Faults, error) {
	f := Faults{BindWait: 500 * time.Millisecond}
	flags := map[string]*bool{
		"": new(bool), "hang-init": &f.HangInit, "hang-init-etcd": &f.HangInitEtcd, "missing-module": &f.MissingModule,
	}
	times := map[string]*time.Duration{
		"slow-start": &f.SlowStart, "crash-every": &f.CrashEvery, "stop-delay": &f.StopDelay,
		"metrics-every": &f.MetricsEvery, "bind-wait": &f.BindWait,
	}
	numbers := map[string]*int{"workers": &f.Workers, "admin-status": &f.AdminStatus, "not-found": &f.NotFound}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		err := errors.New("unknown")
		if flag := flags[name]; flag != nil {
			*flag, err = true, nil
		} else if d := times[name]; d != nil {
			*d, err = time.ParseDuration(value)
		} else if n := numbers[name]; n != nil {
			*n, err = strconv.Atoi(value)
		}
		if err != nil {
			return f, fmt.Errorf("parse fault %q: %w", item, err)
		}
	}
	return f, nil
}

// readFaults reads the faults of the install whose program this process is.
func readFaults(root string) (Faults, error) {
	text := os.Getenv(FaultEnv)
	if text == "" {
		file, err := os.ReadFile(filepath.Join(root, faultFile))
		if err != nil {
			return Faults{}, err
		}
		text = string(file)
	}
	return parseFaults(text)
}
