package proxycheck

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// OpenResty is what an APISIX runs on. It is part of the figure.
type OpenResty struct {
	// Version has four numbers, such as 1.27.1.2.
	Version string
	// Path is the openresty program.
	Path string
	// LuaJIT is its interpreter's version, such as 2.1.1723681758.
	LuaJIT string
	// Modules are those it was built with, by their names or folders, such
	// as http_stub_status_module and apisix-nginx-module-1.16.0.
	Modules []string

	// user is whom its workers run as where root starts it; empty means nobody.
	user string
}

// openRestyRanges are the OpenResty releases for APISIX releases from since on:
// the oldest that they start on, which is what apisix/cli/ops.lua asks for and
// from 3.9 nginx's directive http2, and the newest that they were built on
// (https://github.com/api7/apisix-build-tools).
var openRestyRanges = []struct{ since, oldest, newest Version }{
	{Version{3, 17, 0}, Version{1, 25, 3}, Version{1, 29, 2}},
	{Version{3, 12, 0}, Version{1, 25, 3}, Version{1, 27, 1}},
	{Version{3, 9, 0}, Version{1, 25, 3}, Version{1, 25, 3}},
	{Version{3, 5, 0}, Version{1, 21, 4}, Version{1, 21, 4}},
	{Version{2, 15, 1}, Version{1, 19, 3}, Version{1, 21, 4}},
	{Version{}, Version{1, 17, 8}, Version{1, 21, 4}},
}

// openRestyRange is the oldest and the newest OpenResty for v.
func (v Version) openRestyRange() (oldest, newest Version) {
	for _, r := range openRestyRanges {
		if v.Compare(r.since) >= 0 {
			return r.oldest, r.newest
		}
	}
	return Version{}, Version{}
}

// checkOpenResty refuses an OpenResty on which v doesn't start.
func (v Version) checkOpenResty(or *OpenResty) error {
	oldest, newest := v.openRestyRange()
	if or.number().Compare(oldest) >= 0 {
		return nil
	}
	return process.Hintf(fmt.Sprintf("install OpenResty %s, or apisix-runtime, and put its bin folder first in PATH", newest),
		"use APISIX %s on OpenResty %s (%s): it needs %s or newer", v, or.Version, or.Path, oldest)
}

// number is the first three numbers of the version, which are nginx's.
func (or *OpenResty) number() Version {
	var v Version
	fmt.Sscanf(or.Version, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch)
	return v
}

// has says whether it was built with a module of that name, of any version.
func (or *OpenResty) has(module string) bool {
	return slices.ContainsFunc(or.Modules, func(m string) bool { return strings.HasPrefix(m, module) })
}

// findOpenResty finds the first OpenResty on which the install starts: the one
// beside it, which its package brings, or those of the path and the usual places.
func (in *Install) findOpenResty(ctx context.Context, cfg FindConfig) error {
	var errs []error
	paths := append([]string{filepath.Join(in.Home, "../openresty/bin/openresty")}, cfg.lookPathAll("openresty")...)
	for _, dir := range []string{"/usr/local/openresty/bin", "/usr/bin", "/usr/local/openresty-debug/bin"} {
		paths = append(paths, filepath.Join(cfg.Root, dir, "openresty"))
	}
	for _, path := range paths {
		if !exists(path) {
			continue
		}
		var err error
		in.OpenResty, in.LuaJIT, err = readOpenResty(ctx, path)
		if err == nil {
			err = in.Version.checkOpenResty(in.OpenResty)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return process.Hintf("APISIX runs on OpenResty: install apisix-runtime or openresty, or add its bin folder to PATH",
		"find openresty for the APISIX in %s: it is neither beside it nor on PATH nor in /usr/local/openresty/bin", in.Home)
}

// readOpenResty asks openresty and its LuaJIT, whose path it returns too, for
// their versions.
func readOpenResty(ctx context.Context, path string) (or *OpenResty, luajit string, err error) {
	if err := checkMachine(path, runtime.GOARCH); err != nil {
		return nil, "", err
	}
	out, err := run(ctx, process.Config{Path: path, Args: []string{"-V"}})
	if err != nil {
		return nil, "", err
	}
	or, prefix, err := parseOpenResty(out)
	if err != nil {
		return nil, "", fmt.Errorf("run %s -V: %w; it printed: %s", path, err, summary(out))
	}
	or.Path = path
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, "", fmt.Errorf("find the LuaJIT of %s: %w", path, err)
	}
	// An OpenResty that was moved doesn't know its folder.
	for _, dir := range []string{prefix, filepath.Dir(filepath.Dir(path)), filepath.Join(filepath.Dir(real), "../..")} {
		luajit = filepath.Join(dir, "luajit/bin/luajit")
		if exists(luajit) {
			break
		}
	}
	if err := checkMachine(luajit, runtime.GOARCH); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	if out, err = run(ctx, process.Config{Path: luajit, Args: []string{"-v"}}); err != nil {
		return nil, "", process.WithHint(err, "APISIX's commands run on the LuaJIT of OpenResty: reinstall OpenResty, or put another one's bin folder first in PATH")
	}
	if f := strings.Fields(out); len(f) > 1 {
		or.LuaJIT = foreign(f[1]) // LuaJIT 2.1.1723681758 -- Copyright …
	}
	return or, luajit, nil
}

var (
	openRestyVersion = regexp.MustCompile(`(?m)^nginx version: (?:openresty|nginx)/(\d+\.\d+\.\d+[.\w]*)`)
	openRestyPrefix  = regexp.MustCompile(`--prefix=(\S+)/nginx(?:\s|$)`)
	openRestyUser    = regexp.MustCompile(`--user=(\S+)`)
	openRestyModule  = regexp.MustCompile(`--(?:add(?:-dynamic)?-module=(\S+)|with-(\w+_module)\b)`)
)

// parseOpenResty reads what openresty -V prints. The prefix is the folder that
// it was built for.
func parseOpenResty(out string) (or *OpenResty, prefix string, err error) {
	m := openRestyVersion.FindStringSubmatch(out)
	if m == nil {
		return nil, "", errors.New("its version is missing")
	}
	or = &OpenResty{Version: m[1]}
	for _, m := range openRestyModule.FindAllStringSubmatch(out, -1) {
		or.Modules = append(or.Modules, cmp.Or(m[2], filepath.Base(m[1])))
	}
	if m := openRestyUser.FindStringSubmatch(out); m != nil {
		or.user = m[1]
	}
	if m := openRestyPrefix.FindStringSubmatch(out); m != nil {
		prefix = m[1]
	}
	return or, prefix, nil
}

// architectures are Go's names of the ELF machines that a build is made for.
var architectures = map[elf.Machine]string{elf.EM_AARCH64: "arm64", elf.EM_X86_64: "amd64"}

// checkMachine refuses a program of another architecture: it would run
// emulated, or not at all.
func checkMachine(path, goarch string) error {
	f, err := elf.Open(path)
	if _, other := errors.AsType[*elf.FormatError](err); other || errors.Is(err, io.EOF) {
		return nil // a script around the program: not for us to judge
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	built := cmp.Or(architectures[f.Machine], f.Machine.String())
	if built == goarch {
		return nil
	}
	return process.Hintf("install the "+goarch+" build of OpenResty: under emulation the figures would mean nothing",
		"use %s: it is built for %s and this machine is %s", path, built, goarch)
}
