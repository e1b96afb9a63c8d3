// Package apisixtest is a fake Apache APISIX for tests: an install tree whose
// apisix, openresty and luajit are the test binary itself. They behave as the
// real ones of 2.15.0 and 3.18.0 were recorded to behave, failures that exit
// with 0 included; requests are served by the built-in gateway.
//
// A test binary takes part by calling Main first in its TestMain, or by naming
// APISIX, OpenResty and LuaJIT in testscript's map of commands.
package apisixtest

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// roleEnv tells the processes of a running fake what they are: their first
// argument is a title, as nginx has it.
const roleEnv = "ARMREPRO_FAKE_APISIX_ROLE"

// hang waits to be killed. An empty select would be taken for a deadlock.
func hang() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	<-signals
}

// Main returns at once in a test, and never in a process that was started as
// one of the fake programs.
func Main() {
	// A program built with the race detector sleeps for a second before it
	// exits, which the fake programs need not.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	switch os.Getenv(roleEnv) {
	case "master":
		os.Exit(runMaster())
	case "worker":
		os.Exit(runWorker())
	case "proxy":
		os.Exit(runProxyWorker())
	case "emptyproxy":
		if err := runEmptyProxy(os.Getenv(homeEnv)); err != nil {
			fmt.Fprintln(os.Stderr, "nginx:", err)
			os.Exit(1)
		}
		os.Exit(0)
	case "helper": // the privileged agent
		hang()
	}
	switch filepath.Base(os.Args[0]) {
	case "apisix":
		os.Exit(APISIX())
	case "openresty":
		os.Exit(OpenResty())
	case "luajit":
		os.Exit(LuaJIT())
	}
}
