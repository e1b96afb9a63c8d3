package proxycheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"armrepro/proxycheck/process"
)

// ErrNotInstalled is the error of Find when the machine has no APISIX.
var ErrNotInstalled = errors.New("find APISIX: not installed")

// Install is an installed APISIX. Nothing in it is ever written to.
type Install struct {
	// Home is the folder with apisix/, conf/ and deps/.
	Home string
	// Version is what apisix/core/version.lua and the CLI agree on.
	Version Version
	// OpenResty is what it runs on.
	OpenResty *OpenResty
	// LuaJIT is the interpreter that the CLI runs on.
	LuaJIT string
}

// Installed is an APISIX that was found.
type Installed struct {
	// Home is its folder.
	Home string `json:"home"`
	// Version is empty if it can't be read.
	Version string `json:"version"`
}

// Installs lists every APISIX of the machine, the one that Find takes first.
func Installs(cfg FindConfig) []Installed {
	homes, err := cfg.findHomes()
	if err != nil {
		homes = nil
	}
	cfg.Home = ""
	others, _ := cfg.findHomes()
	var all []Installed
	for _, home := range append(homes, others...) {
		if slices.ContainsFunc(all, func(in Installed) bool { return sameFile(in.Home, home) }) {
			continue
		}
		in := Installed{Home: home}
		if v, err := readVersion(home); err == nil {
			in.Version = v.String()
		}
		all = append(all, in)
	}
	return all
}

func readVersion(home string) (Version, error) {
	file, err := process.ReadPath(filepath.Join(home, versionLua))
	if err != nil {
		return Version{}, err
	}
	return parseVersionLua(file)
}

// FindConfig says where to look.
type FindConfig struct {
	// Home is the only APISIX folder to consider; empty means the usual
	// places.
	Home string
	// Path is the list of folders to search for programs; empty means $PATH.
	Path string
	// Root is put before the usual places; empty means the file system's.
	Root string
}

const (
	// versionLua is in every install and is where its version is written.
	versionLua = "apisix/core/version.lua"
	// cliLua is APISIX's command. It takes the folder that it is started in
	// for its home, if it is named from there; the script around it,
	// /usr/bin/apisix, may name another.
	cliLua = "./apisix/cli/apisix.lua"
)

// findTimeout bounds the commands that say what an install is, which take 0.2 s;
// a machine that starts up may be slow.
func findTimeout() time.Duration { return 30 * timeUnit }

// luarocksTree is where luarocks puts Lua code below a prefix, such as /usr/local; the
// rest of APISIX is in the prefix's apisix then.
const luarocksTree = "share/lua/5.1"

// file is where the install has a file or folder.
func (in *Install) file(name string) string {
	if prefix, ok := strings.CutSuffix(in.Home, "/"+luarocksTree); ok && name != "apisix" && !exists(filepath.Join(in.Home, name)) {
		return filepath.Join(prefix, "apisix", name)
	}
	return filepath.Join(in.Home, name)
}

// Find finds an installed APISIX, preferring that of the first apisix command on
// the path, and the OpenResty it runs on. It returns ErrNotInstalled, with the
// ways to install it as a hint, if there is none, and another error if there is
// one that can't run here.
func Find(ctx context.Context, cfg FindConfig) (*Install, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout())
	defer cancel()
	homes, err := cfg.findHomes()
	if err != nil {
		return nil, err
	}
	in := &Install{Home: homes[0]}
	if in.Version, err = readVersion(in.Home); err != nil {
		return nil, fmt.Errorf("read the version of the APISIX in %s: %w", in.Home, err)
	}
	if err := in.Version.checkSupported(); err != nil {
		return nil, err
	}
	if err := in.findOpenResty(ctx, cfg); err != nil {
		return nil, err
	}
	if err := in.checkCLI(ctx); err != nil {
		return nil, err
	}
	return in, nil
}

// findHomes finds the folders of all installs, the one to use first.
func (cfg FindConfig) findHomes() ([]string, error) {
	if cfg.Home != "" {
		home, err := filepath.Abs(cfg.Home)
		if err == nil && !isHome(home) {
			err = process.Hintf("--apisix-home is the folder that holds apisix/, conf/ and deps/, such as /usr/local/apisix or a source checkout after make deps",
				"there is no %s in %s", versionLua, home)
		}
		if err != nil {
			return nil, fmt.Errorf("find APISIX: %w", err)
		}
		return []string{home}, nil
	}
	scripts := cfg.lookPathAll("apisix")
	if len(scripts) == 0 {
		scripts = []string{filepath.Join(cfg.Root, "/usr/bin/apisix")}
	}
	usual := filepath.Join(cfg.Root, "/usr/local/apisix")
	var homes []string
	for _, script := range scripts {
		homes = append(homes, homesOf(script, usual)...)
	}
	homes = append(homes, usual, filepath.Join(cfg.Root, "/usr/local", luarocksTree))
	var found []string
	for _, home := range homes {
		if isHome(home) && !slices.ContainsFunc(found, func(f string) bool { return sameFile(f, home) }) {
			found = append(found, home)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	err := ErrNotInstalled
	if _, denied := os.Stat(filepath.Join(usual, versionLua)); errors.Is(denied, fs.ErrPermission) {
		return nil, process.Hintf("run armrepro as root, or let this user read that folder", "find APISIX: %w", denied)
	}
	if exists(scripts[0]) {
		err = fmt.Errorf("%w: the command %s is there, but no folder that belongs to it", err, scripts[0])
	}
	release, _ := process.ReadPath(filepath.Join(cfg.Root, "/etc/os-release"))
	return nil, process.WithHint(err, installHint(parseOSRelease(release), runtime.GOARCH))
}

// homesOf lists where the APISIX that a script starts may be: around it, as in a
// source checkout; where it says, if that isn't the usual place, which every
// script names; or beside its folder.
func homesOf(script, usual string) []string {
	real, err := filepath.EvalSymlinks(script)
	if err != nil {
		return nil
	}
	homes := []string{filepath.Dir(filepath.Dir(real))}
	for _, home := range homesNamed(script) {
		if home != usual {
			homes = append(homes, home)
		}
	}
	for _, bin := range []string{filepath.Dir(script), filepath.Dir(real)} {
		homes = append(homes, filepath.Join(bin, "../apisix"), filepath.Join(bin, "../local/apisix"))
	}
	return homes
}

// scriptPath is an absolute path in a shell script.
var scriptPath = regexp.MustCompile(`/[^\s"'` + "`" + `$=;:()|&<>*]+`)

// homesNamed lists the homes that hold what a script names.
func homesNamed(script string) []string {
	text, err := process.ReadPath(script)
	if err != nil || !bytes.HasPrefix(text, []byte("#!")) {
		return nil
	}
	var homes []string
	for _, path := range scriptPath.FindAllString(string(text), -1) {
		for dir := filepath.Clean(path); dir != "/"; dir = filepath.Dir(dir) {
			if isHome(dir) {
				homes = append(homes, dir)
				break
			}
		}
	}
	return homes
}

func isHome(dir string) bool { return exists(filepath.Join(dir, versionLua)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// lookPathAll lists the programs of that name on the path. An empty element of
// it means the current folder, from which nothing should be started unasked.
func (cfg FindConfig) lookPathAll(name string) []string {
	var found []string
	for _, dir := range filepath.SplitList(cmp.Or(cfg.Path, os.Getenv("PATH"))) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found = append(found, p)
		}
	}
	return found
}

// lua runs the LuaJIT of the install in dir.
func (in *Install) lua(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, process.Config{Path: in.LuaJIT, Args: args, Dir: dir, Env: in.environ(dir)})
}

// checkCLI makes sure that the CLI runs, with the libraries that it needs, and
// that it is of the version that the install's file says.
func (in *Install) checkCLI(ctx context.Context) error {
	out, err := in.lua(ctx, in.Home, cliLua, "version")
	if err != nil {
		return process.WithHint(err, cmp.Or(process.Hint(err), "run it in "+in.Home+" to see what is missing"))
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if printed := lines[len(lines)-1]; printed != in.Version.String() {
		return process.Hintf("two installs are mixed up: see which Lua files in /usr/local/apisix/deps and /usr/local/share/lua/5.1 belong to the other",
			"tell the version of the APISIX in %s: its command says %.40q, its %s says %s", in.Home, printed, versionLua, in.Version)
	}
	return nil
}

// printHome runs APISIX's command with a function in place of what would act,
// which prints the folder that it would write to.
const printHome = `arg = {[0] = "` + cliLua + `"}
package.loaded["apisix.cli.ops"] = {execute = function(env) print(env.apisix_home) end}
dofile("` + cliLua + `")`

// checkWritesTo makes sure that the CLI writes to dir if it is started there.
// An install whose Lua code was changed may write elsewhere.
func (in *Install) checkWritesTo(ctx context.Context, dir string) error {
	out, err := in.lua(ctx, dir, "-e", printHome)
	if err != nil {
		return err
	}
	if said, _, _ := strings.Cut(out, "\n"); said != dir {
		return process.Hintf("its apisix/cli was changed to use a fixed folder: reinstall it, or start it yourself and pass --gateway attach",
			"use the APISIX in %s: started in %s it would write to %.100q", in.Home, dir, said)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`(?m)^\s*VERSION\s*=\s*["']([^"']+)["']`)

// parseVersionLua reads apisix/core/version.lua.
func parseVersionLua(file []byte) (Version, error) {
	m := versionPattern.FindSubmatch(file)
	if m == nil {
		return Version{}, fmt.Errorf("find VERSION: it is not in %s", versionLua)
	}
	return ParseVersion(string(m[1]))
}

// checkFiles looks for what APISIX can't start without.
func (in *Install) checkFiles() error {
	for _, name := range []string{cliLua, "conf/mime.types"} {
		if _, err := os.Stat(in.file(name)); err != nil {
			return process.Hintf("the install isn't complete: reinstall it",
				"use the APISIX in %s: %w", in.Home, err)
		}
	}
	real, err := filepath.EvalSymlinks(in.Home)
	if err == nil {
		err = checkEnterable(real)
	}
	if err != nil {
		return process.Hintf("let every user enter that folder, or move the APISIX elsewhere",
			"use the APISIX in %s: %w", in.Home, err)
	}
	return nil
}

// checkEnterable makes sure that the workers can reach dir. Those of a master
// that runs as root run as nobody, others as the same user.
func checkEnterable(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 {
			return fmt.Errorf("the workers run as nobody, who may not enter %s", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// environ is the environment for the CLI and OpenResty in dir: without the
// variables by which APISIX would override its configuration, with OpenResty
// first on the path, and with the PWD that the CLI takes for its home.
func (in *Install) environ(dir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "APISIX_") || strings.HasPrefix(kv, "PATH=") ||
			strings.HasPrefix(kv, "PWD=") || strings.HasPrefix(kv, "LUA_")
	})
	path := cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")
	return append(env, "PATH="+filepath.Dir(in.OpenResty.Path)+":"+path, "PWD="+dir)
}
