package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

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

// says checks the exit code and that all of want was printed.
func (p *program) says(code int, want ...string) {
	p.t.Helper()
	if got := p.exit(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range want {
		if !strings.Contains(p.err.String()+p.out.String(), text) {
			p.t.Errorf("it does not say %q", text)
		}
	}
	if p.t.Failed() {
		p.t.Log(p.err.String() + p.out.String())
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
		do   func(p *nativeRun) error
		code int
		want []string
	}{
		{"master killed", func(p *nativeRun) error { return syscall.Kill(p.child("nginx: master"), syscall.SIGKILL) }, exitFailed,
			[]string{"APISIX has ended: signal: killed"}},
		{"worker killed", func(p *nativeRun) error { return syscall.Kill(p.child("nginx: worker process"), syscall.SIGKILL) }, exitInvalid,
			[]string{"worker"}},
		{"folder removed", func(p *nativeRun) error {
			homes, _ := filepath.Glob(filepath.Join(p.tmp, "armrepro-gateway-*"))
			return os.RemoveAll(homes[0])
		}, exitFailed, []string{"the gateway's folder", "was removed", "set TMPDIR"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := prepareNative(t, "3.18.0", "-d", "1s", "--runs", "1")
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

var _ = strconv.Itoa
