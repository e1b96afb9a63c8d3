package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"armrepro/bench/nginx"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
)

// tools are the programs that are compared.
type tools struct {
	wrk       wrk.Tool
	wrkScript string
	nginx     *nginx.Nginx
	// echo and lua are the files of nginx's modules, in the order in which
	// they are to be loaded.
	echo, lua []string
	armrepro  string
}

func missing(err error) error {
	return process.WithHint(err, `on Debian and its descendants:
  apt-get install wrk nginx libnginx-mod-http-lua libnginx-mod-http-echo`)
}

// findTools finds the peers, and builds armrepro in dir unless it is given. What is
// missing is an error with a hint.
func findTools(ctx context.Context, dir, armrepro string) (t tools, err error) {
	if t.wrk, err = wrk.Find(ctx); err == nil {
		t.nginx, err = nginx.Find(ctx)
	}
	if err == nil {
		t.echo, err = t.nginx.Echo()
	}
	if err == nil {
		t.lua, err = t.nginx.Modules("ndk_http", "ngx_http_lua")
	}
	if err != nil {
		return t, missing(err)
	}
	t.wrkScript = filepath.Join(dir, "done.lua")
	if err := os.WriteFile(t.wrkScript, []byte(wrkScript), 0o600); err != nil {
		return t, fmt.Errorf("write script for wrk: %w", err)
	}
	if t.armrepro = armrepro; armrepro == "" {
		t.armrepro, err = buildArmrepro(ctx, dir)
	}
	return t, err
}

// buildArmrepro builds the program as the Makefile does and returns its path.
func buildArmrepro(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "armrepro")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "armrepro")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", process.Hintf("run this inside the source tree, or name a built program with --armrepro",
			"build armrepro: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return path, nil
}
