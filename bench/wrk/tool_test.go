package wrk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"armrepro/bench/load"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if tool, err := Find(t.Context()); err == nil || !strings.Contains(err.Error(), "find wrk: ") {
		t.Errorf("none is there: %+v, %v", tool, err)
	}
	for said, want := range map[string]string{
		"wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer": "4.1.0-3+b2",
		"wrk 4.2.0-14-ga211dd5 [epoll] Copyright":                      "4.2.0-14-ga211dd5",
		"wrecking ball 1.0": "",
		"":                  "",
	} {
		script := "#!/bin/sh\n[ \"$*\" = -v ] || exit 9\necho '" + said + "'\necho 'Usage: wrk <options> <url>'\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "wrk"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		tool, err := Find(t.Context())
		if (err == nil) != (want != "") || tool.Version != want || want != "" && tool.Path != filepath.Join(dir, "wrk") {
			t.Errorf("%q: %+v, %v", said, tool, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	usual := load.Config{URL: "http://127.0.0.1:1980/", Connections: 16, Threads: 2, Duration: 90 * time.Second, Timeout: 2 * time.Second}
	if err := Check(usual); err != nil {
		t.Error(err)
	}
	const want = "--threads 2 --connections 16 --duration 90s --timeout 2s --latency http://127.0.0.1:1980/"
	if got := strings.Join(Args(usual), " "); got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
	for want, change := range map[string]func(*load.Config){
		"no fixed rate":                     func(c *load.Config) { c.Rate = 1 },
		"whole seconds, not 1.5s":           func(c *load.Config) { c.Duration = 1500 * time.Millisecond },
		"timeout in whole seconds, not 1ms": func(c *load.Config) { c.Timeout = time.Millisecond },
		"2 threads cannot share 15":         func(c *load.Config) { c.Connections = 15 },
	} {
		cfg := usual
		change(&cfg)
		if err := Check(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
