package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"armrepro/proxycheck/process"
)

// tools are the programs that are compared.
type tools struct {
	wrk, wrkVersion, wrkScript string
	nginx, nginxVersion        string
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
	if t.wrk, err = lookPath("wrk"); err == nil {
		t.nginx, err = lookPath("nginx")
	}
	if err != nil {
		return t, missing(fmt.Errorf("find peers: %w", err))
	}
	// wrk prints its version with exit code 1, among its usage.
	usage, _ := exec.CommandContext(ctx, t.wrk, "-v").CombinedOutput()
	build, err := exec.CommandContext(ctx, t.nginx, "-V").CombinedOutput()
	if err != nil {
		return t, fmt.Errorf("read configuration of nginx: %w: %s", err, strings.TrimSpace(string(build)))
	}
	const unknown = "of unknown version"
	t.wrkVersion = find(`(?m)^wrk (?:debian/)?(\S+)`, string(usage), unknown)
	t.nginxVersion = find(`(?m)^nginx version: [^/\s]*/(\S+)`, string(build), unknown)
	modules := moduleDir(string(build))
	t.echo = []string{filepath.Join(modules, "ngx_http_echo_module.so")}
	t.lua = []string{filepath.Join(modules, "ndk_http_module.so"), filepath.Join(modules, "ngx_http_lua_module.so")}
	for _, module := range append(t.echo, t.lua...) {
		if _, err := os.Stat(module); err != nil {
			return t, missing(fmt.Errorf("find module of nginx: %w", err))
		}
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

// lookPath finds a program as the shell does, and where Debian keeps servers,
// which PATH leaves out for users other than root.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		return path, nil
	}
	return exec.LookPath(name)
}

// find is what the group of pattern matches in text, or otherwise.
func find(pattern, text, otherwise string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return otherwise
}

// moduleDir is the folder of nginx's modules, from what nginx -V prints.
func moduleDir(text string) string {
	dir := find(`--modules-path=(\S+)`, text, "modules")
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(find(`--prefix=(\S+)`, text, "/usr/local/nginx"), dir)
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
