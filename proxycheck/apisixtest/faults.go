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
	NotFound int64
}

func parseFaults(text string) (Faults, error) {
	f := Faults{BindWait: 500 * time.Millisecond}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		var err error
		switch name {
		case "":
		case "hang-init":
			f.HangInit = true
		case "hang-init-etcd":
			f.HangInitEtcd = true
		case "missing-module":
			f.MissingModule = true
		case "slow-start":
			f.SlowStart, err = time.ParseDuration(value)
		case "crash-every":
			f.CrashEvery, err = time.ParseDuration(value)
		case "stop-delay":
			f.StopDelay, err = time.ParseDuration(value)
		case "metrics-every":
			f.MetricsEvery, err = time.ParseDuration(value)
		case "bind-wait":
			f.BindWait, err = time.ParseDuration(value)
		case "workers":
			f.Workers, err = strconv.Atoi(value)
		case "admin-status":
			f.AdminStatus, err = strconv.Atoi(value)
		case "not-found":
			f.NotFound, err = strconv.ParseInt(value, 10, 64)
		default:
			err = errors.New("unknown")
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
