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

const installHint = `on Debian and its descendants:
  apt-get install wrk nginx libnginx-mod-http-lua libnginx-mod-http-echo`

// findTools finds the peers. What is missing is an error with a hint.
func findTools(ctx context.Context) (tools, error) {
	var t tools
	var missing []error
	for name, path := range map[string]*string{"wrk": &t.wrk, "nginx": &t.nginx} {
		found, err := lookPath(name)
		if err != nil {
			missing = append(missing, fmt.Errorf("find %s: it is not installed", name))
		}
		*path = found
	}
	if err := errors.Join(missing...); err != nil {
		return tools{}, &proxycheck.HintError{Err: err, Advice: installHint}
	}
	// wrk prints its version with exit code 1, among its usage.
	text, _ := exec.CommandContext(ctx, t.wrk, "-v").CombinedOutput()
	t.wrkVersion = parseWrkVersion(string(text))
	text, err := exec.CommandContext(ctx, t.nginx, "-V").CombinedOutput()
	if err != nil {
		return tools{}, fmt.Errorf("read configuration of nginx: %w: %s", err, strings.TrimSpace(string(text)))
	}
	build := parseNginxBuild(string(text))
	t.nginxVersion = build.version
	if t.echo, err = modules(build.modules, "ngx_http_echo_module.so"); err != nil {
		return tools{}, err
	}
	t.lua, err = modules(build.modules, "ndk_http_module.so", "ngx_http_lua_module.so")
	return t, err
}

// lookPath finds a program as the shell does, and where Debian keeps servers,
// which PATH leaves out for users other than root.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

var wrkVersion = regexp.MustCompile(`(?m)^wrk (\S+)`)

// parseWrkVersion reads what wrk -v prints; unknown if it is something else.
func parseWrkVersion(text string) string {
	if m := wrkVersion.FindStringSubmatch(text); m != nil {
		return strings.TrimPrefix(m[1], "debian/")
	}
	return unknown
}

const unknown = "of unknown version"

// nginxBuild is what nginx tells about itself.
type nginxBuild struct {
	version string
	// modules is the folder of its modules.
	modules string
}

var (
	nginxVersion = regexp.MustCompile(`(?m)^nginx version: [^/\s]*/(\S+)`)
	nginxPrefix  = regexp.MustCompile(`--prefix=(\S+)`)
	nginxModules = regexp.MustCompile(`--modules-path=(\S+)`)
)

// parseNginxBuild reads what nginx -V prints.
func parseNginxBuild(text string) nginxBuild {
	b := nginxBuild{version: unknown, modules: "modules"}
	if m := nginxVersion.FindStringSubmatch(text); m != nil {
		b.version = m[1]
	}
	prefix := "/usr/local/nginx"
	if m := nginxPrefix.FindStringSubmatch(text); m != nil {
		prefix = m[1]
	}
	if m := nginxModules.FindStringSubmatch(text); m != nil {
		b.modules = m[1]
	}
	if !filepath.IsAbs(b.modules) {
		b.modules = filepath.Join(prefix, b.modules)
	}
	return b
}

// modules are the paths of nginx's modules with the given names.
func modules(dir string, names ...string) ([]string, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
		if _, err := os.Stat(paths[i]); err != nil {
			return nil, &proxycheck.HintError{Err: fmt.Errorf("find module of nginx: %w", err), Advice: installHint}
		}
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
