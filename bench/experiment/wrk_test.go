package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
)

// recorded is what wrk 4.1.0 printed.
const recorded = `Running 1s test @ http://127.0.0.1:19801/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    51.52us  217.08us   4.28ms   98.18%
    Req/Sec   102.91k    15.69k  117.08k    81.82%
  Latency Distribution
     50%   25.00us
     75%   30.00us
     90%   37.00us
     99%    1.03ms
  112258 requests in 1.10s, 19.38MB read
Requests/sec: 102054.86
Transfer/sec:     17.62MB
`

// fakeWrk is a generator that runs a shell script. The recorded output is in the
// file $OUT.
func fakeWrk(t *testing.T, script string) wrkGenerator {
	t.Helper()
	dir := t.TempDir()
	real, err := filepath.Abs("testdata/wrk")
	program := filepath.Join(dir, "wrk")
	if err := errors.Join(err,
		os.Symlink(real, program),
		os.WriteFile(filepath.Join(dir, "out"), []byte(recorded), 0o600),
		os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	cpus, err := process.AllowedCPUs(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	return wrkGenerator{pinned{cpus[:1]}, wrk.Tool{Path: program}}
}

// observed counts what an observer is told.
type observed struct{ started, ended int }

func (o *observed) observer() bench.Observer {
	return bench.Observer{Started: func() { o.started++ }, Ended: func() { o.ended++ }, Progress: func(uint64) {}}
}

var usualLoad = load.Config{URL: "http://127.0.0.1:9080/hello", Connections: 16, Threads: 2, Duration: time.Second, Timeout: 2 * time.Second}

func TestWrkGenerator(t *testing.T) {
	t.Parallel()
	// It prints its arguments, its CPUs and what it is to print, and uses memory.
	g := fakeWrk(t, `[ "$*" = "--threads 2 --connections 16 --duration 1s --timeout 2s --latency http://127.0.0.1:9080/hello" ] || exit 9
until grep -q '^Cpus_allowed_list:.[0-9]*$' /proc/self/status; do :; done
sleep 0.6; cat $OUT`)
	var seen observed
	run, err := g.Load(t.Context(), usualLoad, seen.observer())
	if err != nil || run.Requests != 112258 || *run.Latency.MeanWrk != 51.52 || *run.Latency.P99 != 1030 {
		t.Errorf("%+v, %v", run, err)
	}
	if run.CPU.Load == nil || *run.CPU.Load <= 0 || run.RSS.Load == nil || *run.RSS.Load == 0 || seen != (observed{1, 1}) {
		t.Errorf("CPU time %v, memory %v, %+v", run.CPU.Load, run.RSS.Load, seen)
	}
	if run.Reconnects != nil || run.Busy != nil || run.Latency.Mean != nil || run.Latency.P999 != nil || run.UpstreamAnswers != nil {
		t.Errorf("there are figures that nobody told: %+v", run)
	}
}

// TestWrkFails has wrk fail, or print what can't be read.
func TestWrkFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"refused":        {"echo 'unable to connect to 127.0.0.1:1 Connection refused' >&2; exit 1", "exit status 1: unable to connect"},
		"nothing":        {"exit 0", "read what wrk printed: want one run, not 0"},
		"two runs":       {"cat $OUT $OUT", "want one run, not 2"},
		"damaged":        {"sed s/51.52us/51.52xs/ $OUT", `line 4: read "Latency    51.52xs`},
		"cut":            {"head -n 11 $OUT", `ends without the line "Requests/sec"`},
		"huge":           {"cat $OUT; head -c 30000000 /dev/zero", ""},
		"escapes":        {`printf '\033]0;title\007\033[2J'; cat $OUT`, ""},
		"crashes at end": {"cat $OUT; kill -SEGV $$", "segmentation fault"},
	} {
		var seen observed
		run, err := fakeWrk(t, tt.script).Load(t.Context(), usualLoad, seen.observer())
		if got := ""; err != nil {
			got = err.Error()
			if tt.want == "" || !strings.Contains(got, tt.want) || strings.ContainsRune(got, 0x1b) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		} else if tt.want != "" || run.Requests != 112258 {
			t.Errorf("%s: no error, %+v", name, run)
		}
	}
}

// TestWrkInterrupted stops a wrk that ignores the first signal, as it does until it
// measures, and one that ignores every one.
func TestWrkInterrupted(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	for name, tt := range map[string]struct {
		script   string
		requests uint64
		want     string
	}{
		"second signal": {`trap 'n=x$n; [ $n = x ] || { trap "" INT; cat $OUT; exit; }' INT; touch $OUT.ready; while :; do sleep 60 & wait; done`, 112258, "stopped"},
		"no signal":     {`trap '' INT; touch $OUT.ready; while :; do sleep 60 & wait; done`, 0, "wrk does not end when interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := fakeWrk(t, tt.script)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				defer cancel(stopped)
				ready := filepath.Join(filepath.Dir(g.tool.Path), "out.ready")
				_ = process.Poll(ctx, 5*time.Millisecond, func() error { _, err := os.Stat(ready); return err })
			}()
			run, err := g.Load(ctx, usualLoad, (&observed{}).observer())
			if !errors.Is(err, stopped) || !strings.Contains(err.Error(), tt.want) || run.Requests != tt.requests {
				t.Errorf("%v, %d requests", err, run.Requests)
			}
		})
	}
}

// TestWrkReal has the wrk of this machine load nothing.
func TestWrkReal(t *testing.T) {
	t.Parallel()
	tool, err := wrk.Find(t.Context())
	if err != nil {
		t.Skipf("SKIPPED, since wrk is not installed: %v", err)
	}
	g := wrkGenerator{tool: tool}
	cfg := usualLoad
	cfg.URL = "http://127.77.0.1:1/"
	if run, err := g.Load(t.Context(), cfg, (&observed{}).observer()); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("%+v, %v", run, err)
	}
}
