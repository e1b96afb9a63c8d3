package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck"
	"armrepro/proxycheck/apisixtest"
)

// nativeRun is a run of the fake APISIX, whose install must not change.
type nativeRun struct {
	*program
	root, before string
}

func prepareNative(t *testing.T, version string, args ...string) *nativeRun {
	t.Helper()
	root := apisixtest.Install(t, version, "")
	home := filepath.Join(root, "usr/local/apisix")
	args = append([]string{"run", "--gateway", "native", "--apisix-home", home, "--warmup", "0"}, args...)
	return &nativeRun{prepare(t, []string{"PATH=" + apisixtest.Path(root)}, args...), root, checksum(t, root)}
}

// leftNothing checks that the install has not changed either.
func (p *nativeRun) leftNothing() {
	p.t.Helper()
	p.program.leftNothing()
	if checksum(p.t, p.root) != p.before {
		p.t.Error("the install is changed")
	}
}

// port is the one that a flag chooses.
func (p *program) port(name string) string {
	for _, arg := range p.cmd.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	p.t.Fatalf("no --%s in %q", name, p.cmd.Args)
	return ""
}

// loaded waits until the gateway is under load.
func (p *program) loaded() {
	p.t.Helper()
	p.until("the gateway to be loaded", func() bool { return p.child("http://127.0.0.1:"+p.port("gateway-port")+"/hello") != 0 })
}

// says checks the exit code, any below 0, and that all of want was printed.
func (p *program) says(code int, want ...string) {
	p.t.Helper()
	if got := p.exit(); got != code && !(code < 0 && got != exitUsage) {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range want {
		if !strings.Contains(p.err.String()+p.out.String(), text) {
			p.t.Errorf("it does not say %q", text)
		}
	}
	if p.t.Failed() {
		p.t.Log(p.err.String())
	}
}

// TestTwoRuns has the second one name the first, which it leaves alone.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	p := start(t, nil, longRun...)
	p.said("gateway ready")
	pid := p.cmd.Process.Pid
	p.again().says(exitFailed, fmt.Sprintf("another armrepro is already measuring on this machine: process %d (armrepro run", pid), "for ", fmt.Sprintf("'kill %d'", pid))
	p.loaded()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.says(exitInterrupted)
	p.leftNothing()
}

// TestNativeFaults breaks a run of APISIX while it is under load.
func TestNativeFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		do   func(p *nativeRun) error
		code int
		want []string
	}{
		{"master killed", nil, func(p *nativeRun) error { return syscall.Kill(p.child("nginx: master"), syscall.SIGKILL) }, exitFailed,
			[]string{"APISIX has ended: signal: killed"}},
		{"worker killed", []string{"--scenario", "single-upstream"}, func(p *nativeRun) error { return syscall.Kill(p.child("nginx: worker process"), syscall.SIGKILL) }, exitInvalid,
			[]string{"gateway-restarted"}},
		{"worker killed before another scenario", nil, func(p *nativeRun) error { return syscall.Kill(p.child("nginx: worker process"), syscall.SIGKILL) }, exitFailed,
			[]string{"the worker processes were restarted", "its error log ends", "a worker crashed"}},
		{"folder removed", nil, func(p *nativeRun) error { return removeAll(p.tmp, "armrepro-gateway-*") }, exitFailed,
			[]string{"the gateway's folder", "was removed", "set TMPDIR"}},
		{"folder removed at last", []string{"--scenario", "single-upstream"}, func(p *nativeRun) error { return removeAll(p.tmp, "armrepro-gateway-*") }, -1,
			[]string{"gateway-folder", "was removed during the run"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := prepareNative(t, "3.18.0", append(tt.args, "-d", "1s", "--runs", "1")...)
			p.launch()
			p.loaded()
			if err := tt.do(p); err != nil {
				t.Fatal(err)
			}
			p.says(tt.code, tt.want...)
			p.leftNothing()
		})
	}
}

// removeAll removes what matches the pattern in dir.
func removeAll(dir, pattern string) error {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range found {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// TestEtcdRestarts restarts the etcd that the user brought, and stops it.
func TestEtcdRestarts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"restarted": {"etcd-restarted", "after the gateway was started, for"},
		"stopped":   {"etcd-lost", "went away during the run", "keys under /armrepro-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := listen(t)
			etcd := start(t, nil, "etcd", "--listen", address)
			etcd.said("etcd ready")
			p := start(t, nil, "run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "1", "--scenario", "single-upstream", "--etcd", "http://"+address)
			p.loaded()
			if err := etcd.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = etcd.cmd.Wait()
			next := "restarted"
			if name == next {
				start(t, nil, "etcd", "--listen", address).said("etcd ready")
			}
			p.says(-1, want...)
			if name != next {
				start(t, nil, "etcd", "--listen", address).said("etcd ready")
				if err := proxycheck.SweepKeys(""); err != nil {
					t.Error(err)
				}
			}
			p.leftNothing()
		})
	}
}

// TestPortStolen takes a port between the check of the ports and the start of what
// needs it.
func TestPortStolen(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"gateway-port", "tls-port"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			p := prepareNative(t, "3.18.0", "-d", "1s", "--runs", "1")
			p.launch()
			p.said("upstream ready")
			l, err := net.Listen("tcp4", "127.0.0.1:"+p.port(flag))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			p.says(exitFailed, "Address already in use", fmt.Sprintf("port %s was taken after it had been checked, by process %d (", p.port(flag), os.Getpid()))
			p.leftNothing()
		})
	}
}

// pid is the program's.
func (p *program) pid() string { return strconv.Itoa(p.cmd.Process.Pid) }

// TestNotRoot runs as nobody.
func TestNotRoot(t *testing.T) {
	t.Parallel()
	p := prepare(t, nil, shortRun...)
	if os.Geteuid() == 0 {
		const nobody = 65534
		exe := filepath.Join(privateTemp(t), "armrepro")
		text, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = errors.Join(os.WriteFile(exe, text, 0o755), os.Chown(p.tmp, nobody, nobody))
		}
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.Path = exe
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	p.launch()
	p.says(-1, "not root: only root can", "Requests/sec", "[1]")
	if strings.Index(p.err.String(), "not root") > strings.Index(p.err.String(), "etcd ready") {
		t.Errorf("it says so after it has started something:\n%s", p.err.String())
	}
	p.leftNothing()
}

// TestSecurity looks at what a run opens, and for its random key in all that it says
// and saves.
func TestSecurity(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"builtin", "native"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			saved := filepath.Join(t.TempDir(), "result.json")
			args := []string{"-d", "500ms", "--runs", "1", "--log-level", "debug", "--save", saved}
			p := prepare(t, nil, append(append([]string{}, shortRun...), args...)...)
			if kind == "native" {
				p = prepareNative(t, "3.18.0", args...).program
			}
			p.launch()
			p.loaded()
			key := p.adminKey()
			for _, pid := range p.processes() {
				for _, address := range listening(t, pid) {
					if !strings.HasSuffix(address, "0100007F") {
						t.Errorf("process %d listens on %s", pid, address)
					}
				}
			}
			p.says(-1)
			text, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			if len(key) < 16 || strings.Contains(p.out.String()+p.err.String()+string(text), key) {
				t.Errorf("the key %q is printed or saved", key)
			}
			p.leftNothing()
		})
	}
}

// adminKey is the random key of the run's gateway.
func (p *program) adminKey() string {
	files, _ := filepath.Glob(filepath.Join(p.tmp, "*/conf/config.yaml"))
	for _, pid := range p.processes() {
		files = append(files, fmt.Sprintf("/proc/%d/environ", pid))
	}
	pattern := regexp.MustCompile(`(?:ARMREPRO_ADMIN_KEY=|key: )([0-9a-f]{32})`)
	for _, name := range files {
		text, _ := os.ReadFile(name)
		if m := pattern.FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	p.t.Fatal("found no admin key")
	return ""
}

// listening lists the addresses on which a process listens, in hexadecimal.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	owned := map[string]bool{}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		link, _ := os.Readlink(fd)
		owned[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
	}
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile("/proc/net/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(table)) {
			const local, state, inode = 1, 3, 9
			fields := strings.Fields(line)
			if len(fields) > inode && (fields[state] == "0A" || name[0] == 'u') && owned[fields[inode]] {
				address, _, _ := strings.Cut(fields[local], ":")
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// TestNoShell holds that programs are started in one place, which needs no shell.
func TestNoShell(t *testing.T) {
	t.Parallel()
	const root, only = "../..", "proxycheck/process/start_linux.go"
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		isTool := slices.ContainsFunc(tools, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || isTool || name == only {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("exec.Command")) || bytes.Contains(text, []byte("os.StartProcess(")) || bytes.Contains(text, []byte("syscall.Exec(")) {
			t.Errorf("%s starts programs; only %s does", name, only)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
