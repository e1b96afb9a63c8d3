package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/machine"
	"armrepro/bench/machine/vmtest/transcript"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// description is what armrepro machine prints.
type description struct {
	machine.Machine
	Evidence []machine.Evidence `json:"evidence"`
}

// asExpected is what the first guest says and measures if all is well.
func asExpected() (description, bench.Result) {
	g := guests[0]
	d := description{Machine: machine.Machine{
		CPU:   machine.CPU{Core: g.want.core, Product: g.want.product, Features: []string{"crc32"}},
		Cloud: g.want.cloud, Instance: g.want.instance, Hypervisor: g.want.hypervisor, Container: "none",
		Arch: guestArch, Kernel: "6.1.0-57-cloud-arm64", PageSize: pageSize,
		Cores: guestCores, UsableCores: guestCores, MemoryBytes: 2000 << 20,
		Emulated: true, EmulatedWhy: "it is",
	}}
	for _, field := range []string{"cpu.core", "cpu.product", "cloud", "instance", "hypervisor", "emulated"} {
		d.Evidence = append(d.Evidence, machine.Evidence{Field: field, Why: "a file says so"})
	}
	figure, bytes := 1.5, uint64(1<<20)
	scenario := func(name string) bench.ScenarioResult {
		return bench.ScenarioResult{Name: name, QPS: &figure, LatencyMs: &figure, Runs: []bench.Run{{
			Result: load.Result{Requests: 1, Latency: load.Latency{P50: &figure, P99: &figure}},
			CPU:    bench.CPU{Gateway: &figure},
			RSS:    bench.RSS{Gateway: &bytes},
		}}}
	}
	return d, bench.Result{
		Machine:   d.Machine,
		Gateway:   bench.GatewayInfo{Kind: "builtin", Name: "armrepro-builtin"},
		Scenarios: []bench.ScenarioResult{scenario("one"), scenario("two")},
		Warnings:  []bench.Warning{{Code: "emulated-cpu", Invalid: true}},
		Verdict:   bench.Invalid,
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	zero := 0.0
	for name, test := range map[string]struct {
		change func(*description, *bench.Result)
		want   string
	}{
		"as expected":      {func(*description, *bench.Result) {}, ""},
		"other core":       {func(d *description, r *bench.Result) { d.CPU.Core, r.Machine.CPU.Core = "x", "x" }, `cpu.core is "x", want "Neoverse N1"`},
		"other core later": {func(_ *description, r *bench.Result) { r.Machine.CPU.Core = "x" }, `machine.cpu.core of the run is "x", want "Neoverse N1"`},
		"cloud unknown":    {func(d *description, _ *bench.Result) { d.Cloud = "" }, `cloud is "", want "AWS"`},
		"not emulated":     {func(d *description, _ *bench.Result) { d.Emulated = false }, `emulated is false, want true`},
		"emulated, no why": {func(d *description, _ *bench.Result) { d.EmulatedWhy = "" }, `emulated_why is empty`},
		"large pages":      {func(d *description, _ *bench.Result) { d.PageSize = 65536 }, `page_size is 65536, want 4096`},
		"no features":      {func(d *description, _ *bench.Result) { d.CPU.Features = nil }, `cpu.features is [], without crc32`},
		"a frequency":      {func(d *description, _ *bench.Result) { d.CPU.Frequency.MeasuredMHz = 2500 }, `cpu.frequency.measured_mhz is 2500, want 0`},
		"too much memory":  {func(d *description, _ *bench.Result) { d.MemoryBytes = 4 << 30 }, `memory_bytes is 4096 MiB of 2048`},
		"host's kernel":    {func(d *description, _ *bench.Result) { d.Kernel = "6.1" }, `kernel is "6.1", not that of linux-image-cloud-arm64`},
		"no evidence":      {func(d *description, _ *bench.Result) { d.Evidence[2].Why = "" }, `there is no evidence for cloud`},
		"instance id":      {func(d *description, _ *bench.Result) { d.Evidence[0].Why = "I-0123456789ABCDEF0" }, `"` + describe + `" tells i-0123456789abcdef0`},
		"valid":            {func(_ *description, r *bench.Result) { r.Verdict = bench.Valid }, `verdict is "valid", want "invalid"`},
		"not warned":       {func(_ *description, r *bench.Result) { r.Warnings = nil }, `no warning says that the CPU is emulated`},
		"one scenario":     {func(_ *description, r *bench.Result) { r.Scenarios = r.Scenarios[:1] }, `number of scenarios is 1, want 2`},
		"no run":           {func(_ *description, r *bench.Result) { r.Scenarios[0].Runs = nil }, `one has 0 runs, want 1`},
		"no requests":      {func(_ *description, r *bench.Result) { r.Scenarios[0].QPS = &zero }, `one has no requests`},
		"no latency":       {func(_ *description, r *bench.Result) { r.Scenarios[1].LatencyMs = nil }, `two has no latency`},
		"no CPU time":      {func(_ *description, r *bench.Result) { r.Scenarios[1].Runs[0].CPU.Gateway = nil }, `two has no CPU time of the gateway`},
		"no memory":        {func(_ *description, r *bench.Result) { r.Scenarios[1].Runs[0].RSS.Gateway = nil }, `two has no memory of the gateway`},
		"timeouts":         {func(_ *description, r *bench.Result) { r.Scenarios[0].Runs[0].Errors.Timeout = 2 }, ""},
		"errors":           {func(_ *description, r *bench.Result) { r.Scenarios[0].Runs[0].Errors.Read = 2 }, `one has errors other than timeouts: {Connect:0 Read:2 Write:0 Timeout:0 Status:0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, r := asExpected()
			test.change(&d, &r)
			seen := guests[0].check([]transcript.Command{
				{Line: describe, Stdout: asJSON(t, d)},
				{Line: measure, Stdout: asJSON(t, r), Exit: exitInvalid},
			})
			if got := strings.Join(seen.wrong, "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckCommands(t *testing.T) {
	t.Parallel()
	d, r := asExpected()
	for name, test := range map[string]struct {
		done []transcript.Command
		want string
	}{
		"none": {nil, `"` + describe + `" did not run` + "\n" + `"` + measure + `" did not run`},
		"valid exit": {[]transcript.Command{
			{Line: describe, Stdout: asJSON(t, d)},
			{Line: measure, Stdout: asJSON(t, r), Stderr: "a message\n"},
		}, `"` + measure + `": exit code 0, want 3: a message`},
		"died": {[]transcript.Command{
			{Line: describe, Stdout: asJSON(t, d)},
			{Line: measure, Stderr: "panic\n", Exit: -1},
		}, `"` + measure + `": exit code -1, want 3: panic`},
		"no JSON": {[]transcript.Command{
			{Line: describe, Stdout: "CPU  Graviton2\n"},
			{Line: measure, Stdout: asJSON(t, r), Exit: exitInvalid},
		}, `"` + describe + `": read output: invalid character 'C' looking for beginning of value` + "\n" +
			`machine.cpu.core of the run is "Neoverse N1", want ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := guests[0].check(test.done)
			if got := strings.Join(seen.wrong, "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseDependency(t *testing.T) {
	t.Parallel()
	const kernel = "linux-image-6.1.0-57-cloud-arm64:arm64"
	for text, want := range map[string]string{
		"linux-image-cloud-arm64:arm64\n  Depends: " + kernel + "\n":                       kernel,
		"linux-image-cloud-arm64:arm64\n  Depends: <virtual>\n  Depends: " + kernel + "\n": kernel,
		"linux-image-cloud-arm64:arm64\n  PreDepends: dpkg\n":                              "",
		"": "",
	} {
		got, err := parseDependency(kernelPackage, text)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q and error %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParseDependency(f *testing.F) {
	f.Add("a\n  Depends: b\n")
	f.Add("  Depends: <v>\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseDependency("p", text)
		if (err == nil) == (got == "") {
			t.Errorf("got %q and error %v", got, err)
		}
	})
}

// fakeKit fills a folder like build. Another program stands for the emulator.
func fakeKit(t *testing.T, emulator string) string {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "emulator/usr/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"emulator/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
		"emulator/usr/lib/x86_64-linux-gnu/libfdt.so.1", "emulator/lib/x86_64-linux-gnu/libfuse3.so.3",
		"guest/boot/vmlinuz-6.1.0-57-cloud-arm64", "guest/boot/System.map-6.1.0-57-cloud-arm64",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath(emulator)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "qemu-system-aarch64")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindKit(t *testing.T) {
	t.Parallel()
	dir := fakeKit(t, "true")
	got, err := findKit(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := kit{
		emulator:  dir + "/emulator/usr/bin/qemu-system-aarch64",
		firmware:  dir + "/emulator/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
		kernel:    dir + "/guest/boot/vmlinuz-6.1.0-57-cloud-arm64",
		libraries: []string{dir + "/emulator/usr/lib/x86_64-linux-gnu", dir + "/emulator/lib/x86_64-linux-gnu"},
		version:   got.version,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kit{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(got.version, "\n") {
		t.Errorf("version %q has several lines", got.version)
	}
	env := got.environment()
	if last := env[len(env)-1]; last != "LD_LIBRARY_PATH="+strings.Join(want.libraries, ":") {
		t.Errorf("environment ends with %s", last)
	}
}

func TestFindKitDamaged(t *testing.T) {
	t.Parallel()
	noKernel := fakeKit(t, "true")
	if err := os.Remove(filepath.Join(noKernel, "guest/boot/vmlinuz-6.1.0-57-cloud-arm64")); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no kernel": noKernel, "emulator fails": fakeKit(t, "false")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := findKit(t.Context(), dir)
			if want := "Remove " + dir + " and try again: it is filled anew."; err == nil || proxycheck.Hint(err) != want {
				t.Errorf("error %v has hint %q, want %q", err, proxycheck.Hint(err), want)
			}
		})
	}
}

func TestBoot(t *testing.T) {
	t.Parallel()
	k := kit{emulator: filepath.Join(fakeKit(t, "echo"), "emulator/usr/bin/qemu-system-aarch64"), firmware: "FIRMWARE", kernel: "KERNEL"}
	for _, g := range guests {
		var shown bytes.Buffer
		console, err := k.boot(t.Context(), g, "INITRAMFS", &shown)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{" -cpu " + g.cpu + " ", " -kernel KERNEL ", " -initrd INITRAMFS "}
		for _, s := range g.smbios {
			want = append(want, " -smbios "+s)
		}
		for _, arg := range want {
			if !strings.Contains(string(console), arg) {
				t.Errorf("%s: no %q in %s", g.name, arg, console)
			}
		}
		if got := strings.Contains(string(console), " -bios FIRMWARE"); got != g.firmware {
			t.Errorf("%s: firmware is %v in %s", g.name, got, console)
		}
		if shown.String() != string(console) {
			t.Errorf("%s: shown %q, returned %q", g.name, shown.String(), console)
		}
	}
}

// TestInterrupt ends a program that would never end.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	p, err := process.Start(process.Config{
		Path: "sh", Args: []string{"-c", "echo started; exec tail -f /dev/null"},
		Stdout: writerFunc(func() { cancel(interrupted) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := finish(ctx, p); !errors.Is(err, interrupted) {
		t.Errorf("error %v, want %v", err, interrupted)
	}
	select {
	case <-p.Done():
	default:
		t.Error("it still runs")
	}
}

type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

func TestOutput(t *testing.T) {
	t.Parallel()
	got, err := output(t.Context(), process.Config{Path: "sh", Args: []string{"-c", "echo out; echo err >&2"}})
	if got != "out\n" || err != nil {
		t.Errorf("got %q and error %v", got, err)
	}
	_, err = output(t.Context(), process.Config{Path: "sh", Args: []string{"-c", "echo cause >&2; exit 4"}})
	if err == nil || err.Error() != "run sh: exit status 4: cause" {
		t.Errorf("error %v", err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	d, r := asExpected()
	var b bytes.Buffer
	table := newTable(&b)
	table.add(guests[0], outcome{machine: d.Machine, result: &r}, 13*time.Second)
	r.Scenarios[1].QPS = nil
	table.add(guest{name: "broken", cpu: "max"}, outcome{wrong: []string{"it hangs"}}, time.Second)
	table.close("all in %.1f s", 14.0)
	want := `guest      CPU model    core         product    cloud    instance   emulated  time    as expected
c6g.large  neoverse-n1  Neoverse N1  Graviton2  AWS      c6g.large  yes       13.0 s  yes
broken     max          unknown      unknown    unknown  unknown    no        1.0 s   no

c6g.large, one on armrepro-builtin: 2 requests/s, verdict invalid
c6g.large, two on armrepro-builtin: 2 requests/s, verdict invalid
all in 14.0 s
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args           []string
		exit           int
		stdout, stderr string
	}{
		"help":     {[]string{"--help"}, exitOK, "Usage: go run ./bench/machine/vmtest", ""},
		"flag":     {[]string{"--no-such"}, exitUsage, "", "vmtest: unknown flag: --no-such; see --help\n"},
		"argument": {[]string{"x"}, exitUsage, "", "vmtest: unexpected argument \"x\"; see --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			exit := run(t.Context(), test.args, &stdout, &stderr)
			if exit != test.exit || !strings.HasPrefix(stdout.String(), test.stdout) || stderr.String() != test.stderr {
				t.Errorf("exit code %d, want %d; stdout %q; stderr %q", exit, test.exit, &stdout, &stderr)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		exit int
		want string
	}{
		"nothing": {nil, exitOK, ""},
		"failure": {&proxycheck.HintError{Err: errors.New("find apt"), Hint: "Install it."}, exitFailed, "vmtest: find apt\n\nInstall it.\n"},
		"interrupted": {
			&proxycheck.HintError{Err: fmt.Errorf("run apt-get: %w", &signalError{os.Interrupt}), Hint: "Install it."},
			exitInterrupted, "vmtest: interrupted by interrupt\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if exit := report(test.err, &stderr); exit != test.exit || stderr.String() != test.want {
				t.Errorf("exit code %d, want %d; stderr %q", exit, test.exit, &stderr)
			}
		})
	}
}
