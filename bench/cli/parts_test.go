package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"armrepro/bench"
	"armrepro/proxycheck/apisixtest"
)

// TestParts measures everything that is measured beside the scenarios, each on a
// gateway that is started anew, and stops in the middle of the last.
func TestParts(t *testing.T) {
	t.Parallel()
	root := apisixtest.Install(t, "3.18.0", "")
	before := checksum(t, root)
	p := start(t, []string{"PATH=" + apisixtest.Path(root)},
		"run", "-d", "200ms", "--warmup", "0", "--runs", "1", "--gateway", "native", "--apisix-home", filepath.Join(root, "usr/local/apisix"),
		"--workers", "1,2", "--connections", "8,1,2", "--empty-proxy", "--memory", "-o", "json")
	p.said("a minute without load")
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	p.leftNothing()
	p = start(t, p.cmd.Env, slices.DeleteFunc(p.cmd.Args[1:], func(arg string) bool { return arg == "--memory" })...)
	if code := p.exit(); code != exitOK && code != exitInvalid {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	var result bench.Result
	if err := json.Unmarshal([]byte(p.out.String()), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Scaling) != 1 || result.Scaling[0].Workers != 2 || len(result.Scaling[0].Scenarios) != 2 {
		t.Errorf("scaling: %+v", result.Scaling)
	}
	if e := result.EmptyProxy; e == nil || len(e.Scenarios) != 1 || e.Scenarios[0].QPS == nil {
		t.Errorf("empty proxy: %+v", e)
	}
	if len(result.Scenarios) != 2 || len(result.Scenarios[1].Concurrency) != 2 || result.ControlOne == nil {
		t.Errorf("scenarios: %+v", result.Scenarios)
	}
	p.leftNothing()
	if after := checksum(t, root); after != before {
		t.Error("the install is changed")
	}
}
