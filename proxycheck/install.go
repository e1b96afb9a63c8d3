package proxycheck

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ErrNotInstalled is the error of Find when the machine has no APISIX.
var ErrNotInstalled = errors.New("find APISIX: not installed")

// Install is an installed APISIX. Nothing in it is ever written to.
type Install struct {
	// Home is the folder with apisix/, conf/ and deps/.
	Home string
	// CLI is the apisix shell script.
	CLI string
	// OpenResty is the openresty program.
	OpenResty string
	// LuaJIT is the interpreter that the CLI runs on.
	LuaJIT string
	// Version is what `apisix version` and apisix/core/version.lua agree on.
	Version Version
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

const versionTimeout = 15 * time.Second

// Find finds an installed APISIX and the OpenResty it runs on. It returns
// ErrNotInstalled, with the ways to install it as a hint, if there is none, and
// another error if there is one that can't run here.
func Find(ctx context.Context, cfg FindConfig) (*Install, error) {
	if cfg.Path == "" {
		cfg.Path = os.Getenv("PATH")
	}
	inst, err := cfg.findHome()
	if err != nil {
		return nil, err
	}
	if inst.OpenResty, err = cfg.findOpenResty(inst.Home); err != nil {
		return nil, err
	}
	if err := checkMachine(inst.OpenResty, runtime.GOARCH); err != nil {
		return nil, err
	}
	if err := inst.readVersion(ctx); err != nil {
		return nil, err
	}
	if err := inst.Version.checkSupported(); err != nil {
		return nil, err
	}
	return inst, nil
}

// findHome finds the folder and the CLI.
func (cfg FindConfig) findHome() (*Install, error) {
	cli := cfg.lookPath("apisix")
	if cli == "" {
		cli = existing(filepath.Join(cfg.Root, "/usr/bin/apisix"))
	}
	if cfg.Home != "" {
		home, err := filepath.Abs(cfg.Home)
		if err != nil {
			return nil, fmt.Errorf("find APISIX: %w", err)
		}
		if existing(filepath.Join(home, versionLua)) == "" {
			return nil, &HintError{
				Err:  fmt.Errorf("find APISIX in %s: there is no %s", home, versionLua),
				Hint: "--apisix-home is the folder that holds apisix/, conf/ and deps/, such as /usr/local/apisix or a source checkout after make deps",
			}
		}
		return newInstall(home, cli)
	}
	var homes []string
	if cli != "" {
		// A source checkout has its CLI in bin.
		if real, err := filepath.EvalSymlinks(cli); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(real)))
		}
	}
	homes = append(homes, filepath.Join(cfg.Root, "/usr/local/apisix"))
	for _, home := range homes {
		if existing(filepath.Join(home, versionLua)) != "" {
			return newInstall(home, cli)
		}
	}
	if cli != "" {
		return nil, &HintError{
			Err:  fmt.Errorf("find APISIX: there is the command %s, but the folder that belongs to it is in none of %s", cli, strings.Join(homes, ", ")),
			Hint: "name the folder that holds apisix/, conf/ and deps/ with --apisix-home",
		}
	}
	return nil, notInstalled(cfg.Root)
}

// versionLua is in every install and is where its version is written.
const versionLua = "apisix/core/version.lua"

// newInstall prefers the CLI that came with home to the one found elsewhere.
func newInstall(home, cli string) (*Install, error) {
	if own := existing(filepath.Join(home, "bin/apisix")); own != "" {
		cli = own
	}
	if cli == "" {
		return nil, &HintError{
			Err:  fmt.Errorf("find the apisix command for %s: it is neither on PATH nor in /usr/bin nor in %s/bin", home, home),
			Hint: "reinstall APISIX, or pass the source checkout it was installed from as --apisix-home",
		}
	}
	return &Install{Home: home, CLI: cli}, nil
}

// findOpenResty looks on the path first, as the apisix command does.
func (cfg FindConfig) findOpenResty(home string) (string, error) {
	if p := cfg.lookPath("openresty"); p != "" {
		return p, nil
	}
	for _, p := range []string{
		"/usr/local/openresty/bin/openresty",
		"/usr/bin/openresty",
		"/usr/local/openresty-debug/bin/openresty",
	} {
		if p := existing(filepath.Join(cfg.Root, p)); p != "" {
			return p, nil
		}
	}
	return "", &HintError{
		Err:  fmt.Errorf("find openresty for the APISIX in %s: it is neither on PATH nor in /usr/local/openresty/bin", home),
		Hint: "APISIX runs on OpenResty: install apisix-runtime or openresty, or add its bin folder to PATH",
	}
}

// lookPath is the absolute path of the first program of that name on the path,
// or empty.
func (cfg FindConfig) lookPath(name string) string {
	for _, dir := range filepath.SplitList(cfg.Path) {
		// An empty element means the current folder, from which no
		// program should be started unasked.
		if !filepath.IsAbs(dir) {
			continue
		}
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

func existing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// elfMachines is the ELF machine of each architecture a build is made for.
var elfMachines = map[string]elf.Machine{
	"arm64": elf.EM_AARCH64,
	"amd64": elf.EM_X86_64,
}

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
	if want, ok := elfMachines[goarch]; ok && f.Machine != want {
		return &HintError{
			Err:  fmt.Errorf("use %s: it is built for %s and this machine is %s", path, machineName(f.Machine), goarch),
			Hint: "install the " + goarch + " build of OpenResty: under emulation the figures would mean nothing",
		}
	}
	return nil
}

func machineName(m elf.Machine) string {
	for arch, em := range elfMachines {
		if em == m {
			return arch
		}
	}
	return m.String()
}

// readVersion asks the CLI for its version and interpreter, and compares with
// what the install's own file says.
func (in *Install) readVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	// The CLI prefers the APISIX of its working folder to any other.
	cmd := exec.CommandContext(ctx, in.CLI, "version")
	cmd.Dir = in.Home
	cmd.Env = in.environ(in.Home)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("run %s version: %w", in.CLI, context.Cause(ctx))
	}
	luajit, printed, perr := parseVersionOutput(out)
	if err != nil || perr != nil {
		return &HintError{
			Err:  fmt.Errorf("run %s version: %w; it printed: %s", in.CLI, cmp.Or(err, perr), gist(string(out))),
			Hint: cmp.Or(failureHint(string(out)), "run it in "+in.Home+" to see what is missing"),
		}
	}
	file, err := os.ReadFile(filepath.Join(in.Home, versionLua))
	if err != nil {
		return fmt.Errorf("read the version of APISIX: %w", err)
	}
	written, err := parseVersionLua(file)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", versionLua, in.Home, err)
	}
	if printed != written {
		return &HintError{
			Err:  fmt.Errorf("tell the version of the APISIX in %s: %s says %s, its %s says %s", in.Home, in.CLI, printed, versionLua, written),
			Hint: "two installs are mixed up: pass the folder you mean as --apisix-home",
		}
	}
	in.LuaJIT, in.Version = luajit, written
	return nil
}

// parseVersionOutput reads what `apisix version` prints: the interpreter's
// command line first, the version on the last line.
func parseVersionOutput(out []byte) (luajit string, v Version, err error) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if v, err = ParseVersion(lines[len(lines)-1]); err != nil {
		return "", Version{}, err
	}
	for _, line := range lines[:len(lines)-1] {
		if f := strings.Fields(line); len(f) == 3 && strings.HasSuffix(f[1], "apisix.lua") && f[2] == "version" {
			return f[0], v, nil
		}
	}
	return "", Version{}, errors.New("the line that names the interpreter is missing")
}

var versionPattern = regexp.MustCompile(`(?m)^\s*VERSION\s*=\s*["']([^"']+)["']`)

// parseVersionLua reads apisix/core/version.lua.
func parseVersionLua(file []byte) (Version, error) {
	m := versionPattern.FindSubmatch(file)
	if m == nil {
		return Version{}, errors.New("find VERSION: it is not in the file")
	}
	return ParseVersion(string(m[1]))
}

// checkFiles looks for what APISIX can't start without.
func (in *Install) checkFiles() error {
	for _, name := range []string{"apisix/cli/apisix.lua", "conf/mime.types"} {
		if _, err := os.Stat(filepath.Join(in.Home, name)); err != nil {
			return &HintError{
				Err:  fmt.Errorf("use the APISIX in %s: %w", in.Home, err),
				Hint: "the install isn't complete: reinstall it",
			}
		}
	}
	real, err := filepath.EvalSymlinks(in.Home)
	if err == nil {
		err = checkEnterable(real)
	}
	if err != nil {
		return &HintError{
			Err:  fmt.Errorf("use the APISIX in %s: %w", in.Home, err),
			Hint: "let every user enter that folder, or move the APISIX elsewhere",
		}
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
	path := filepath.Dir(in.OpenResty)
	if p := os.Getenv("PATH"); p != "" {
		path += string(filepath.ListSeparator) + p
	} else {
		path += ":/usr/local/bin:/usr/bin:/bin"
	}
	return append(env, "PATH="+path, "PWD="+dir)
}

// gist is what matters of what a Lua program printed: the beginning of the error
// that ended it, without the traceback, or else the last lines.
func gist(out string) string {
	text, _, traced := strings.Cut(out, "\nstack traceback:")
	if !traced {
		return lastLines(out, 5)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "luajit: ") {
			lines = lines[i:min(i+2, len(lines))]
			break
		}
	}
	return lastLines(strings.Join(lines, "\n"), 5)
}

// lastLines is the end of s, at most n lines, as one line.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, " | ")
}
