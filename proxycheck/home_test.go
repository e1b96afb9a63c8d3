package proxycheck

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/process"
)

func TestHomeLinks(t *testing.T) {
	t.Parallel()
	for version, inYAML := range map[string]bool{"2.15.0": true, "3.9.1": true, "3.18.0": false} {
		inst := fakeInstall(t, version, "")
		h, err := newHome(shortTempDir(t), inst)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"apisix", "deps", "conf/mime.types", "conf/cert", "conf/debug.yaml"} {
			if got, err := os.Readlink(h.path(name)); err != nil || got != filepath.Join(inst.Home, name) {
				t.Errorf("%s: %s leads to %q, %v", version, name, got, err)
			}
		}
		_, err = os.Lstat(h.path("conf/config-default.yaml"))
		if (err == nil) != inYAML {
			t.Errorf("%s: config-default.yaml: %v", version, err)
		}
		if _, err := os.Lstat(h.path("conf/config.yaml")); err == nil {
			t.Errorf("%s: the install's config.yaml is in the home", version)
		}
		for range 2 {
			if err := h.Remove(); err != nil {
				t.Error(err)
			}
		}
		if exists(h.dir) {
			t.Errorf("%s: the home is still there", version)
		}
	}
}

func TestHomeParents(t *testing.T) {
	t.Parallel()
	base := shortTempDir(t)
	mkdir := func(name string, mode os.FileMode) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(mkdir("target", 0o755), link); err != nil {
		t.Fatal(err)
	}
	inst := fakeInstall(t, "3.18.0", "")
	for _, tt := range []struct {
		name, dir, want string
		root            bool // only refused when run as root
	}{
		{"plain", mkdir("plain", 0o755), "", false},
		{"a link", link, "", false},
		{"too long", mkdir(strings.Repeat("x", 70), 0o755), "too many for APISIX's unix sockets", false},
		{"missing", filepath.Join(base, "none"), "no such file", false},
		{"under root's", "/root", "refuses to start under /root", true},
		{"closed", mkdir("closed", 0o700), "who may not enter", true},
		{"in a closed one", mkdir("closed/inner", 0o755), "who may not enter", true},
	} {
		if tt.root && os.Geteuid() != 0 {
			continue
		}
		h, err := newHome(tt.dir, inst)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if real, _ := filepath.EvalSymlinks(h.dir); real != h.dir {
				t.Errorf("%s: the home %s is really %s", tt.name, h.dir, real)
			}
			if err := h.Remove(); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(process.Hint(err), "TMPDIR") {
			t.Errorf("%s: %v (%s), want %q in it", tt.name, err, process.Hint(err), tt.want)
		}
	}
}

// What the sweep takes for ours is the leaf's to test.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := shortTempDir(t)
	inst := fakeInstall(t, "3.18.0", "")
	var homes []*home
	for range 2 {
		h, err := newHome(dir, inst)
		if err != nil {
			t.Fatal(err)
		}
		homes = append(homes, h)
	}
	if err := homes[0].Leave(); err != nil { // as a killed run does
		t.Fatal(err)
	}
	before := checksums(t, inst.Home)
	theirs := filepath.Join(dir, "armrepro-src")
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Sweep(t.Context(), dir); err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{homes[1].dir, theirs}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %v, %v, want %v", left, err, want)
	}
	sameChecksums(t, before, checksums(t, inst.Home))
	if err := homes[1].Remove(); err != nil {
		t.Error(err)
	}
}

// Whatever the umask is, the workers get at what they need, and nobody else at
// the key.
func TestHomeModes(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	etcd, upstream := etcdAt(startEtcd(t)), startUpstream(t)
	for _, tt := range []struct{ umask, user int }{{0o027, 0}, {0o077, 0}, {0o777, 0}, {0o001, nobody}, {0o077, nobody}} {
		t.Run(fmt.Sprintf("umask %o user %d", tt.umask, tt.user), func(t *testing.T) {
			t.Parallel()
			if os.Geteuid() != 0 && tt.user != 0 {
				t.Skip("only root can be another user")
			}
			cfg := conductorConfig{
				Kind: "native", Install: fakeInstall(t, "3.18.0", ""), RunDir: shortTempDir(t), Ports: freePorts(t),
				Etcd: etcd, Upstream: upstream, Umask: tt.umask, User: tt.user,
			}
			if tt.user != 0 {
				cfg.Kind = "home" // that user can't start the fake programs
			}
			if err := os.Chmod(cfg.RunDir, 0o777); err != nil {
				t.Fatal(err)
			}
			conductor, _ := startConductor(t, cfg) // its route is live
			homes, _ := filepath.Glob(filepath.Join(cfg.RunDir, "*"))
			want := map[string]string{"": "drwxr-xr-x 0", "conf": "drwxr-xr-x 0", "logs": "drwxr-xr-x 0", "lock": "-rw------- 0", "conf/config.yaml": "-r-------- 65534"}
			if user := cmp.Or(tt.user, os.Geteuid()); user != 0 {
				dir, file := fmt.Sprint("drwx------ ", user), fmt.Sprint("-rw------- ", user)
				want = map[string]string{"": dir, "conf": dir, "logs": dir, "lock": file, "conf/config.yaml": file}
			}
			for name, want := range want {
				info, err := os.Stat(filepath.Join(homes[0], name))
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(info.Mode(), " ", info.Sys().(*syscall.Stat_t).Uid); got != want {
					t.Errorf("%q is %s, want %s", name, got, want)
				}
			}
			killAndWait(t, conductor)
			if err := Sweep(t.Context(), cfg.RunDir); err != nil {
				t.Error(err)
			}
			// Another user's home is for him to remove.
			if _, err := os.Stat(homes[0]); (err == nil) != (tt.user != 0) {
				t.Errorf("the home after the sweep: %v", err)
			}
		})
	}
}

func TestLastErrors(t *testing.T) {
	t.Parallel()
	log := strings.Join([]string{
		`2026/11/30 10:59:19 [warn] 1#1: something dull`,
		`2026/11/30 10:59:19 [error] 1#1: init_by_lua error: module 'x' not found:`,
		"\tno field package.preload['x']",
		`2026/11/30 10:59:20 [notice] 1#1: exit`,
		`2026/11/30 10:59:20 [alert] 2#2: setrlimit(RLIMIT_NOFILE, 20480) failed (1: Operation not permitted)`,
		`2026/11/30 10:59:21 [emerg] 1#1: it is over`,
	}, "\n")
	want := "2026/11/30 10:59:19 [error] 1#1: init_by_lua error: module 'x' not found: | no field package.preload['x'] | 2026/11/30 10:59:21 [emerg] 1#1: it is over"
	if got := lastErrors(log, 5); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := lastErrors(log, 1); !strings.HasSuffix(want, got) || strings.Contains(got, "|") {
		t.Errorf("one line: %q", got)
	}
	if got := lastErrors("2026/11/30 10:59:19 [warn] 1#1: dull\n", 5); got != "" {
		t.Errorf("nothing wrong: %q", got)
	}
}

func FuzzLastErrors(f *testing.F) {
	f.Add("2026/11/30 10:59:19 [error] 1#1: x\n\ty\n")
	f.Add("nginx: [emerg] bind()")
	f.Fuzz(func(t *testing.T, log string) {
		if got := lastErrors(log, 3); strings.Count(got, "\n") > 0 {
			t.Errorf("%q has several lines", got)
		}
	})
}

func TestLastErrorsOnce(t *testing.T) {
	t.Parallel()
	log := ""
	for i := range 5 {
		log += fmt.Sprintf("2026/12/01 01:37:4%d [error] 28451#28451: *229%d [lua] routes.lua:201: no etcd, client: 127.0.0.1, request: \"GET /%d\"\n", i, i, i)
	}
	if got := lastErrors(log, 5); strings.Count(got, "no etcd") != 1 {
		t.Error(got)
	}
}
