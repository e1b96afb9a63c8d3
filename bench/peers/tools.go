package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"armrepro/proxycheck"
)

// tools are the programs that are compared.
type tools struct {
	wrk, wrkVersion     string
	nginx, nginxVersion string
	// echo and lua are the files of nginx's modules, in the order in which
	// they are to be loaded.
	echo, lua []string
	armrepro  string
}

// unknown stands for a version that a program does not tell.
const unknown = "of unknown version"

func missing(err error) error {
	return &proxycheck.HintError{Err: err, Advice: `on Debian and its descendants:
  apt-get install wrk nginx libnginx-mod-http-lua libnginx-mod-http-echo`}
}

// findTools finds the peers. What is missing is an error with a hint.
func findTools(ctx context.Context) (t tools, err error) {
	var errs [2]error
	t.wrk, errs[0] = lookPath("wrk")
	t.nginx, errs[1] = lookPath("nginx")
	if err := errors.Join(errs[:]...); err != nil {
		return tools{}, missing(err)
	}
	// wrk prints its version with exit code 1, among its usage.
	text, _ := exec.CommandContext(ctx, t.wrk, "-v").CombinedOutput()
	t.wrkVersion = find(`(?m)^wrk (?:debian/)?(\S+)`, string(text), unknown)
	if text, err = exec.CommandContext(ctx, t.nginx, "-V").CombinedOutput(); err != nil {
		return tools{}, fmt.Errorf("read configuration of nginx: %w: %s", err, strings.TrimSpace(string(text)))
	}
	t.nginxVersion = find(`(?m)^nginx version: [^/\s]*/(\S+)`, string(text), unknown)
	dir := moduleDir(string(text))
	if t.echo, err = modules(dir, "ngx_http_echo_module.so"); err != nil {
		return tools{}, err
	}
	t.lua, err = modules(dir, "ndk_http_module.so", "ngx_http_lua_module.so")
	return t, err
}

// lookPath finds a program as the shell does, and where Debian keeps servers,
// which PATH leaves out for users other than root.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("/usr/sbin/" + name)
	if err != nil {
		err = fmt.Errorf("find %s: it is not installed", name)
	}
	return path, err
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

// modules are the paths of nginx's modules with the given names.
func modules(dir string, names ...string) ([]string, error) {
	var paths []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return nil, missing(fmt.Errorf("find module of nginx: %w", err))
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// buildArmrepro builds the program as the Makefile does and returns its path.
func buildArmrepro(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "armrepro")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "armrepro")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", &proxycheck.HintError{
			Err:    fmt.Errorf("build armrepro: %w: %s", err, strings.TrimSpace(string(text))),
			Advice: "run this inside the source tree, or name a built program with --armrepro",
		}
	}
	return path, nil
}
