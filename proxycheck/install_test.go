package proxycheck

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/process"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := apisixtest.Install(t, "3.18.0", "")
	home := filepath.Join(root, "usr/local/apisix")
	for name, cfg := range map[string]FindConfig{
		"on the path":      {Root: root, Path: apisixtest.Path(root)},
		"usual places":     {Root: root, Path: "/nowhere"},
		"home given":       {Root: root, Path: "/nowhere", Home: home},
		"relative in path": {Root: root, Path: "." + ":" + apisixtest.Path(root)},
	} {
		inst, err := Find(t.Context(), cfg)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, process.Hint(err))
			continue
		}
		if inst.Home != home || inst.Version != (Version{3, 18, 0}) || !strings.HasSuffix(inst.LuaJIT, "luajit/bin/luajit") ||
			inst.OpenResty.Path != filepath.Join(root, "usr/local/openresty/bin/openresty") ||
			inst.OpenResty.Version != "1.27.1.2" || inst.OpenResty.LuaJIT != "2.1.1723681758" {
			t.Errorf("%s: %+v", name, inst)
		}
	}
}

// findFailure is a way in which Find fails, and what has to be said of it.
type findFailure struct {
	name, version string
	change        func(t *testing.T, root string, cfg *FindConfig)
	want, hint    string
	notInstalled  bool
}

var findFailures = []findFailure{
	{
		name:   "nothing there",
		change: func(t *testing.T, root string, cfg *FindConfig) { cfg.Root = t.TempDir(); cfg.Path = "/nowhere" },
		want:   "not installed", hint: "--gateway builtin", notInstalled: true,
	},
	{
		name: "a command without its folder",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			cfg.Root = t.TempDir()
			cfg.Path = filepath.Join(cfg.Root, "usr/bin")
			writeScript(t, filepath.Join(cfg.Path, "apisix"), "exec luajit /nowhere/apisix/cli/apisix.lua $*")
		},
		want: "not installed: the command", hint: "--gateway builtin", notInstalled: true,
	},
	{
		name:   "not a home",
		change: func(t *testing.T, root string, cfg *FindConfig) { cfg.Home = root },
		want:   "there is no apisix/core/version.lua", hint: "--apisix-home is the folder",
	},
	{
		name: "no openresty",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			remove(t, root, "usr/local/openresty/bin/openresty")
		},
		want: "find openresty", hint: "add its bin folder to PATH",
	},
	{
		name: "no LuaJIT",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			remove(t, root, "usr/local/openresty/luajit/bin/luajit")
		},
		want: "luajit: no such file", hint: "reinstall OpenResty",
	},
	{
		name: "OpenResty too old",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			apisixtest.SetOpenResty(t, root, "1.21.4.1")
		},
		want: "use APISIX 3.18.0 on OpenResty 1.21.4.1 (", hint: "install OpenResty 1.29.2",
	},
	{
		name: "OpenResty of no version",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			apisixtest.SetOpenResty(t, root, "of mine")
		},
		want: "its version is missing; it printed: nginx version: openresty/of mine",
	},
	{
		name: "openresty of another machine",
		change: func(t *testing.T, root string, _ *FindConfig) {
			foreignProgram(t, root, "usr/local/openresty/bin/openresty")
		},
		want: "bin/openresty: it is built for " + otherArch() + " and this machine is " + runtime.GOARCH, hint: "emulation",
	},
	{
		name:   "LuaJIT of another machine",
		change: func(t *testing.T, root string, _ *FindConfig) { foreignProgram(t, root, luajitPath) },
		want:   "luajit: it is built for " + otherArch() + " and this machine is " + runtime.GOARCH, hint: "emulation",
	},
	{
		name: "two installs mixed up",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			remove(t, root, "usr/local/openresty/luajit/bin/luajit")
			writeScript(t, filepath.Join(root, "usr/local/openresty/luajit/bin/luajit"), "echo 2.15.0")
		},
		want: `its command says "2.15.0", its apisix/core/version.lua says 3.18.0`, hint: "mixed up",
	},
	{
		name: "command fails",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			remove(t, root, "usr/local/openresty/luajit/bin/luajit")
			writeScript(t, filepath.Join(root, "usr/local/openresty/luajit/bin/luajit"), `[ "$1" = -v ] || { echo lua: cannot open file; exit 1; }`)
		},
		want: "cannot open file", hint: "see what is missing",
	},
	{
		name: "missing Lua module",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			remove(t, root, "usr/local/openresty/luajit/bin/luajit")
			writeScript(t, filepath.Join(root, "usr/local/openresty/luajit/bin/luajit"),
				`[ "$1" = -v ] || { echo "luajit: x.lua:1: module 'tinyyaml' not found:"; echo 'stack traceback:'; exit 1; }`)
		},
		want: "exit status 1; it printed: luajit: x.lua:1: module 'tinyyaml' not found:", hint: "make deps",
	},
	{
		name: "no version in the file",
		change: func(t *testing.T, root string, cfg *FindConfig) {
			if err := os.WriteFile(filepath.Join(root, "usr/local/apisix", versionLua), []byte("return {}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		want: "find VERSION",
	},
	{
		name: "too old", version: "2.13.3",
		change: func(*testing.T, string, *FindConfig) {},
		want:   "use APISIX 2.13.3", hint: "--gateway attach",
	},
}

// foreignProgram puts a program that is built for another architecture in the place of one.
func foreignProgram(t *testing.T, root, name string) {
	t.Helper()
	machines := map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64}
	if err := os.WriteFile(remove(t, root, name), elfHeader(machines[otherArch()]), 0o755); err != nil {
		t.Fatal(err)
	}
}

func otherArch() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

// writeScript writes a shell script.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindFails(t *testing.T) {
	t.Parallel()
	for _, tt := range findFailures {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			version := tt.version
			if version == "" {
				version = "3.18.0"
			}
			root := apisixtest.Install(t, version, "")
			cfg := FindConfig{Root: root, Path: apisixtest.Path(root)}
			tt.change(t, root, &cfg)
			inst, err := Find(t.Context(), cfg)
			if err == nil {
				t.Fatalf("it found %+v", inst)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error lacks %q:\n%v", tt.want, err)
			}
			if got := process.Hint(err); (tt.hint == "") != (got == "") || !strings.Contains(got, tt.hint) {
				t.Errorf("the hint is %q, want %q in it", got, tt.hint)
			}
			if errors.Is(err, ErrNotInstalled) != tt.notInstalled {
				t.Errorf("ErrNotInstalled: %v", errors.Is(err, ErrNotInstalled))
			}
		})
	}
}

// remove removes a file of the install and returns its path.
func remove(t *testing.T, root, name string) string {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// elfHeader is an ELF file of that machine, as far as its header.
func elfHeader(m elf.Machine) []byte {
	b := make([]byte, 64)
	copy(b, elf.ELFMAG)
	b[elf.EI_CLASS], b[elf.EI_DATA], b[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	binary.LittleEndian.PutUint16(b[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(b[18:], uint16(m))
	binary.LittleEndian.PutUint32(b[20:], uint32(elf.EV_CURRENT))
	binary.LittleEndian.PutUint16(b[52:], 64) // the header's own size
	return b
}

func TestCheckMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	arm, x86, s390 := write("arm", elfHeader(elf.EM_AARCH64)), write("x86", elfHeader(elf.EM_X86_64)), write("s390", elfHeader(elf.EM_S390))
	for _, tt := range []struct {
		path, goarch, want string
	}{
		{arm, "arm64", ""}, {x86, "amd64", ""},
		{x86, "arm64", "built for amd64 and this machine is arm64"},
		{arm, "amd64", "built for arm64 and this machine is amd64"},
		{s390, "arm64", "built for EM_S390"},
		{write("script", []byte("#!/bin/sh\nexec openresty \"$@\"\n")), "arm64", ""},
		{write("empty", nil), "arm64", ""},
		{filepath.Join(dir, "none"), "arm64", "no such file"},
	} {
		err := checkMachine(tt.path, tt.goarch)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s on %s: %v", tt.path, tt.goarch, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s on %s: %v, want %q in it", tt.path, tt.goarch, err, tt.want)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	const missing = "luajit ./apisix/cli/apisix.lua version\n/usr/local/openresty/luajit/bin/luajit: ./apisix/cli/file.lua:18: module 'tinyyaml' not found:\n\tno field package.preload['tinyyaml']\n\tno file '/x.lua'\nstack traceback:\n\t[C]: in function 'require'\n\t[C]: at 0x5648dbd4e380\n"
	for in, want := range map[string]string{
		missing:                      "/usr/local/openresty/luajit/bin/luajit: ./apisix/cli/file.lua:18: module 'tinyyaml' not found: | no field package.preload['tinyyaml']",
		"a\nb\nc\nd\ne\nf\n":         "b | c | d | e | f",
		"odd\nstack traceback:\n\tx": "odd",
		"":                           "",
	} {
		if got := summary(in); got != want {
			t.Errorf("summary(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSummary(f *testing.F) {
	f.Add("luajit: x\nstack traceback:\n")
	f.Add("\nstack traceback:")
	f.Fuzz(func(t *testing.T, out string) {
		if got := summary(out); strings.Contains(got, "\n") {
			t.Errorf("%q has several lines", got)
		}
	})
}

func FuzzParseVersionLua(f *testing.F) {
	f.Add([]byte("return {\n    VERSION = \"3.18.0\"\n}\n"))
	f.Add([]byte("VERSION = '2.15.0'"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if v, err := parseVersionLua(file); err == nil && !strings.Contains(string(file), "VERSION") {
			t.Errorf("%v out of %q", v, file)
		}
	})
}
