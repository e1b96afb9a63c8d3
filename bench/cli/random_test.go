package cli

import (
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck"
	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/process"
)

// signalsEnv is how many random signals TestRandomSignals sends.
const signalsEnv = "ARMREPRO_TEST_SIGNALS"

// victim is a run that a signal ends, and how to see what it has left elsewhere.
type victim struct {
	*program
	leftElsewhere func(t *testing.T)
}

// victims are runs of each kind of gateway.
var victims = []struct {
	kind  string
	start func(t *testing.T) victim
}{
	{"builtin", func(t *testing.T) victim { return victim{start(t, nil, longRun...), nil} }},
	{"native", func(t *testing.T) victim {
		version := []string{"2.15.0", "3.18.0"}[rand.IntN(2)]
		p := prepareNative(t, version, "-d", "60s")
		p.launch()
		return victim{p.program, func(t *testing.T) {
			if checksum(t, p.root) != p.before {
				t.Error("the install is changed")
			}
		}}
	}},
	{"empty proxy", func(t *testing.T) victim {
		root := apisixtest.Install(t, "3.18.0", "")
		return victim{start(t, []string{"PATH=" + apisixtest.Path(root)}, "run", "--gateway", "native", "--apisix-home", filepath.Join(root, "usr/local/apisix"),
			"--warmup", "0", "-d", "100ms", "--runs", "1", "--scenario", "single-upstream", "--empty-proxy"), nil}
	}},
	{"external etcd", func(t *testing.T) victim {
		etcd := "http://" + startPart(t, "etcd", nil)
		return victim{start(t, nil, append(longRun, "--etcd", etcd)...), func(t *testing.T) { noKeys(t, etcd) }}
	}},
	{"attach", func(t *testing.T) victim {
		etcd := "http://" + startPart(t, "etcd", nil)
		admin := listen(t)
		gateway := startPart(t, "gateway", []string{proxycheck.AdminKeyEnv + "=k"}, "--etcd", etcd, "--etcd-prefix", "/armrepro-0", "--admin-listen", admin, "--prometheus-listen", listen(t))
		return victim{start(t, nil, "run", "--gateway", "attach", "--gateway-url", "http://"+gateway, "--admin-url", "http://"+admin, "--admin-key", "k", "-d", "60s", "--warmup", "0"),
			func(t *testing.T) { noKeys(t, etcd) }}
	}},
}

// startPart starts a part alone and returns its address.
func startPart(t *testing.T, part string, env []string, args ...string) string {
	t.Helper()
	address := listen(t)
	start(t, env, append([]string{part, "--listen", address}, args...)...).said(part + " ready")
	return address
}

// noKeys checks that no key of a run is in an etcd.
func noKeys(t *testing.T, etcd string) {
	t.Helper()
	// From /armrepro- to /armrepro. in base64.
	answer, err := process.Fetch(t.Context(), http.MethodPost, etcd+"/v3/kv/range", `{"key":"L2FybXJlcHJvLQ==","range_end":"L2FybXJlcHJvLg=="}`)
	if err != nil || strings.Contains(answer, `"kvs"`) {
		t.Errorf("left in etcd: %s, %v", answer, err)
	}
}

// TestRandomSignals ends runs at random moments: none leaves an orphan, a changed file,
// a port that is listened on, a route, a key or a folder.
func TestRandomSignals(t *testing.T) {
	t.Parallel()
	count := 2 * len(victims)
	if n, err := strconv.Atoi(os.Getenv(signalsEnv)); err == nil {
		count = n
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGKILL}
	for i := range count {
		v := victims[i%len(victims)]
		sig := signals[rand.IntN(len(signals))]
		if sig == syscall.SIGKILL && (v.kind == "external etcd" || v.kind == "attach") {
			sig = syscall.SIGTERM // a later run removes what is left elsewhere
		}
		after := rand.N(3 * time.Second)
		t.Run(strings.Join([]string{v.kind, sig.String(), after.String()}, " "), func(t *testing.T) {
			t.Parallel()
			p := v.start(t)
			p.said("INF machine") // earlier there is no handler, and nothing to remove
			time.Sleep(after)
			_ = p.cmd.Process.Signal(sig) // a short run may have ended
			code := p.exit()
			if sig == syscall.SIGKILL {
				p.until("every process to end", func() bool { return len(p.processes()) == 0 })
				if err := proxycheck.Sweep(t.Context(), p.tmp); err != nil {
					t.Error(err)
				}
			} else if code != exitInterrupted && code != exitOK && code != exitInvalid && p.err.String() != "" {
				t.Errorf("exit code %d\n%s", code, p.err.String())
			}
			p.leftNothing()
			p.freedPorts()
			if p.leftElsewhere != nil {
				p.leftElsewhere(t)
			}
		})
	}
}

// freedPorts checks that nothing listens on the run's ports any more.
func (p *program) freedPorts() {
	p.t.Helper()
	for _, arg := range p.cmd.Args {
		flag, port, _ := strings.Cut(arg, "=")
		if !strings.HasSuffix(flag, "-port") {
			continue
		}
		l, err := net.Listen("tcp4", "127.0.0.1:"+port)
		if err != nil {
			p.t.Errorf("%s: %v", flag, err)
			continue
		}
		l.Close()
	}
}
