package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"armrepro/bench"
	"armrepro/bench/nginx"
	"armrepro/bench/report"
	"armrepro/bench/wrk"
)

// fakeTools is a PATH with a wrk and an nginx that are this program: its load takes
// wrk's flags and prints what wrk does.
func fakeTools(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"wrk": `[ "$1" = -v ] && { echo "wrk 4.2.0 [epoll] Copyright (C) 2012 Will Glozer"; exit 1; }
exec %[1]s load "$@"`,
		"nginx": `[ "$1" = -V ] && { printf "nginx version: nginx/1.26.3\nconfigure arguments: --add-module=../echo-nginx-module-0.63\n" >&2; exit; }
listen=$(sed -n "s/^ *listen \(.*\) backlog.*/\1/p" "$4" | paste -sd,)
trap 'kill $!; exit' TERM
%[1]s upstream --quiet --listen "$listen" & wait`,
	} {
		text := "#!/bin/sh\n" + fmt.Sprintf(script, "'"+self+"'") + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// toolsRun are arguments of a short run.
var toolsRun = []string{"run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "1", "--scenario", "single-upstream", "-o", "json"}

// measuredResult is what the program printed as JSON once it has ended.
func (p *program) measuredResult() bench.Result {
	p.t.Helper()
	if code := p.exit(); code != exitOK && code != exitInvalid {
		p.t.Fatalf("exit code %d\n%s", code, p.err.String())
	}
	results, err := report.Read(strings.NewReader(p.out.String()))
	if err != nil || len(results) != 1 {
		p.t.Fatalf("%v in\n%s", err, p.out.String())
	}
	p.leftNothing()
	return results[0]
}

// TestTools has wrk and nginx stand in: what they do not tell is missing.
func TestTools(t *testing.T) {
	t.Parallel()
	r := start(t, []string{fakeTools(t)}, append(toolsRun, "--load-tool", "wrk", "--upstream-tool", "nginx")...).measuredResult()
	if l, u := r.Tools.Load, r.Tools.Upstream; l == nil || l.Version != "4.2.0" || filepath.Base(l.Path) != "wrk" ||
		u == nil || u.Version != "1.26.3" || filepath.Base(u.Path) != "nginx" || r.Tools.CrossCheck != nil {
		t.Errorf("tools %+v", r.Tools)
	}
	for _, run := range append(slices.Clone(r.Scenarios[0].Runs), *r.Control) {
		if run.Requests == 0 || run.Latency.MeanWrk == nil || run.Latency.P99 == nil || run.CPU.Load == nil || *run.CPU.Load <= 0 || run.CPU.Upstream == nil || run.RSS.Upstream == nil {
			t.Errorf("figures are missing: %+v", run)
		}
		if run.UpstreamAnswers != nil || run.Reconnects != nil || run.Busy != nil || run.Latency.Mean != nil || run.Latency.P999 != nil || run.Histogram != "" {
			t.Errorf("there are figures that nobody told: %+v", run)
		}
	}
	var table bytes.Buffer
	if err := report.Write(&table, "text", []bench.Result{r}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with wrk and nginx", "upstream answers", "wrk 4.2.0", "nginx 1.26.3"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, table.String())
		}
	}
}

func TestCrossCheck(t *testing.T) {
	t.Parallel()
	r := start(t, []string{fakeTools(t)}, append(toolsRun, "--cross-check")...).measuredResult()
	s := r.Scenarios[0]
	if r.Tools.Load != nil || r.Tools.CrossCheck == nil || s.CrossCheck == nil || s.CrossCheck.Run.Requests == 0 || len(s.Runs) != 1 || s.Runs[0].Reconnects == nil {
		t.Errorf("%+v, %+v", r.Tools, s)
	}
	if answers := s.CrossCheck.Run.UpstreamAnswers; answers == nil || *answers < s.CrossCheck.Run.Requests {
		t.Errorf("the upstream gave %v of %d answers", answers, s.CrossCheck.Run.Requests)
	}
}

// TestCrossCheckOnce makes one cross-check on the first of several starts.
func TestCrossCheckOnce(t *testing.T) {
	t.Parallel()
	r := start(t, []string{fakeTools(t)}, append(toolsRun, "--cross-check", "--restarts", "2")...).measuredResult()
	s := r.Scenarios[0]
	if len(r.Starts) < 2 || s.CrossCheck == nil || s.CrossCheck.Run.Requests == 0 || r.Verdict == bench.Interrupted {
		t.Errorf("%d starts, %s, %+v", len(r.Starts), r.Verdict, s.CrossCheck)
	}
	var table bytes.Buffer
	if err := report.Write(&table, "text", []bench.Result{r}, report.Options{}); err != nil || strings.Count(table.String(), "cross-check with wrk") != 1 {
		t.Errorf("%v\n%s", err, table.String())
	}
}

// toolsLong are arguments of a run that goes on until it is stopped.
var toolsLong = slices.Clip(slices.Concat(longRun, []string{"--load-tool", "wrk", "--upstream-tool", "nginx"}))

// wrkLoads waits until wrk has loaded the gateway for a moment.
func (p *program) wrkLoads() {
	p.t.Helper()
	p.until("the load to begin", func() bool { return p.child("load --threads") != 0 })
}

// TestToolsInterrupted has Ctrl-C make wrk print what it has.
func TestToolsInterrupted(t *testing.T) {
	t.Parallel()
	p := start(t, []string{fakeTools(t)}, append(toolsLong, "-o", "json")...)
	p.wrkLoads()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	p.leftNothing()
	results, err := report.Read(strings.NewReader(p.out.String()))
	if err != nil || results[0].Verdict != bench.Interrupted {
		t.Errorf("%v in\n%s", err, p.out.String())
	}
}

// TestToolsKilled kills the program: nothing outlives it, and the next run removes the
// folder that nginx ran in.
func TestToolsKilled(t *testing.T) {
	t.Parallel()
	p := start(t, []string{fakeTools(t)}, toolsLong...)
	p.wrkLoads()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.until("every process to end", func() bool { return len(p.processes()) == 0 })
	if left, err := filepath.Glob(filepath.Join(p.tmp, "armrepro-upstream-*")); err != nil || len(left) != 1 {
		t.Errorf("left %q, %v", left, err)
	}
	p.cmd.Args = append([]string{p.cmd.Args[0]}, append(shortRun, p.cmd.Args[1+len(toolsLong):]...)...)
	next := p.again()
	if code := next.exit(); code != exitOK && code != exitInvalid {
		t.Errorf("the next run: exit code %d\n%s", code, next.err.String())
	}
	next.leftNothing()
}

// TestToolDies kills one of them.
func TestToolDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ child, want string }{
		{"nginx -p", "the upstream ended"},
		{"load --threads", "signal: killed"},
	} {
		t.Run(strings.Fields(tt.child)[0], func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{fakeTools(t)}, toolsLong...)
			p.wrkLoads()
			if err := syscall.Kill(p.child(tt.child), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != exitFailed || !strings.Contains(p.err.String(), tt.want) {
				t.Errorf("exit code %d, want %q in\n%s", code, tt.want, p.err.String())
			}
			p.leftNothing()
		})
	}
}

// TestToolMissing says what to install before anything is started.
func TestToolMissing(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	for _, name := range []string{"wrk", "nginx"} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte("#!/bin/sh\necho something else\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ path, flag, want, install string }{
		{"/nowhere", "--load-tool=wrk", "find wrk:", "apt-get install wrk"},
		{"/nowhere", "--cross-check", "find wrk:", "apt-get install wrk"},
		{broken, "--cross-check", "does not name a version", "apt-get install wrk"},
		{broken, "--upstream-tool=nginx", "does not name a version", "apt-get install nginx libnginx-mod-http-echo"},
	} {
		p := start(t, []string{"PATH=" + tt.path}, "run", "--gateway", "builtin", tt.flag)
		if code := p.exit(); code != exitFailed || !strings.Contains(p.err.String(), tt.want) || !strings.Contains(p.err.String(), tt.install) ||
			strings.Contains(p.err.String(), "ready") {
			t.Errorf("%s: exit code %d\n%s", tt.flag, code, p.err.String())
		}
		p.leftNothing()
	}
}

// TestRealTools measures with the wrk and nginx of this machine, and proves the test
// route through nginx.
func TestRealTools(t *testing.T) {
	t.Parallel()
	if _, err := wrk.Find(t.Context()); err != nil {
		t.Skipf("SKIPPED, since wrk is not installed: %v", err)
	}
	found, err := nginx.Find(t.Context())
	if err == nil {
		_, err = found.Echo()
	}
	if err != nil {
		t.Skipf("SKIPPED, since nginx with its echo module is not installed: %v", err)
	}
	r := start(t, nil, append(toolsRun, "--load-tool", "wrk", "--upstream-tool", "nginx", "--upstreams", "2")...).measuredResult()
	for _, run := range append(slices.Clone(r.Scenarios[0].Runs), *r.Control) {
		if run.Requests == 0 || run.Errors.Total() > 0 || run.CPU.Upstream == nil || *run.CPU.Upstream <= 0 || run.RSS.Load == nil {
			t.Errorf("%+v", run)
		}
		if found.Counts() && (run.UpstreamAnswers == nil || *run.UpstreamAnswers < run.Requests) {
			t.Errorf("nginx counted %v of %d requests", run.UpstreamAnswers, run.Requests)
		}
	}
	check := start(t, nil, "check", "--gateway", "builtin", "--upstream-tool", "nginx")
	if code := check.exit(); code != exitOK || !strings.Contains(check.out.String(), "/anything/das is live") ||
		!strings.Contains(check.out.String(), "nginx "+found.Version) {
		t.Errorf("check: exit code %d\n%s%s", code, check.out.String(), check.err.String())
	}
	check.leftNothing()
	long := start(t, nil, append(toolsLong, "-o", "json")...)
	long.until("the load to begin", func() bool { return long.child("wrk --threads") != 0 })
	if err := long.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := long.exit(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, long.err.String())
	}
	long.leftNothing()
}
