package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/machine"
	"armrepro/bench/machine/vmtest/transcript"
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
		CPU:   machine.CPU{Core: g.want.Core, Product: g.want.Product, Features: []string{"crc32"}},
		Cloud: g.want.Cloud, Instance: g.want.Instance, Hypervisor: g.want.Hypervisor, Container: "none",
		Arch: guestArch, Kernel: "6.1.0-57-cloud-arm64", PageSize: 4096,
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
		"other core":       {func(d *description, r *bench.Result) { d.CPU.Core, r.Machine.CPU.Core = "x", "x" }, `not the machine`},
		"other core later": {func(_ *description, r *bench.Result) { r.Machine.CPU.Core = "x" }, `the run's core is "x"`},
		"cloud unknown":    {func(d *description, _ *bench.Result) { d.Cloud = "" }, `not the machine`},
		"not emulated":     {func(d *description, _ *bench.Result) { d.Emulated = false }, `not the machine`},
		"emulated, no why": {func(d *description, _ *bench.Result) { d.EmulatedWhy = "" }, `emulated_why is empty`},
		"large pages":      {func(d *description, _ *bench.Result) { d.PageSize = 65536 }, `not the machine`},
		"no features":      {func(d *description, _ *bench.Result) { d.CPU.Features = nil }, `cpu.features is [], without crc32`},
		"a frequency":      {func(d *description, _ *bench.Result) { d.CPU.Frequency.MeasuredMHz = 2500 }, `a frequency was measured`},
		"too much memory":  {func(d *description, _ *bench.Result) { d.MemoryBytes = 4 << 30 }, `memory_bytes is 4096 MiB of 2048`},
		"host's kernel":    {func(d *description, _ *bench.Result) { d.Kernel = "6.1" }, `kernel is "6.1", not the guest's`},
		"no evidence":      {func(d *description, _ *bench.Result) { d.Evidence[2].Why = "" }, `there is no evidence for cloud`},
		"instance id":      {func(d *description, _ *bench.Result) { d.Evidence[0].Why = "I-0123456789ABCDEF0" }, `"` + describe + `" tells i-0123456789abcdef0`},
		"valid":            {func(_ *description, r *bench.Result) { r.Verdict = bench.Valid }, `verdict is "valid"`},
		"not warned":       {func(_ *description, r *bench.Result) { r.Warnings = nil }, `no warning says that the CPU is emulated`},
		"one scenario":     {func(_ *description, r *bench.Result) { r.Scenarios = r.Scenarios[:1] }, `there are 1 scenarios, not 2`},
		"no run":           {func(_ *description, r *bench.Result) { r.Scenarios[0].Runs = nil }, `one has 0 runs, not 1`},
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
			got := strings.Join(seen.wrong, "\n")
			if !strings.Contains(got, test.want) || test.want == "" && got != "" || len(seen.wrong) > 1 {
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
			`the run's core is "Neoverse N1"`},
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

// TestBoot lets another program stand for the emulator.
func TestBoot(t *testing.T) {
	t.Parallel()
	k := kit{emulator: "echo", firmware: "FIRMWARE", kernel: "KERNEL"}
	for _, g := range guests {
		console, err := k.boot(t.Context(), g, "INITRAMFS")
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
	}
}

// TestOutput ends a program that would never end, too.
func TestOutput(t *testing.T) {
	t.Parallel()
	got, err := output(t.Context(), []string{"WORD=out"}, "sh", "-c", "echo $WORD; echo err >&2")
	if string(got) != "out\n" || err != nil {
		t.Errorf("got %q and error %v", got, err)
	}
	_, err = output(t.Context(), nil, "sh", "-c", "echo cause >&2; exit 4")
	if err == nil || err.Error() != "run sh: exit status 4: cause" {
		t.Errorf("error %v", err)
	}
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, late)
	defer cancel()
	if _, err = output(ctx, nil, "tail", "-f", "/dev/null"); !errors.Is(err, late) {
		t.Errorf("error %v, want %v", err, late)
	}
}

func TestFindKit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"emulator/usr/bin/qemu-system-aarch64", "emulator/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
		"emulator/usr/lib/x86_64-linux-gnu/libfdt.so.1", "emulator/lib/x86_64-linux-gnu/libfuse3.so.3",
		"guest/boot/vmlinuz-6.1.0-57-cloud-arm64", "guest/boot/System.map-6.1.0-57-cloud-arm64",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := findKit(dir)
	if err != nil || got.kernel != dir+"/guest/boot/vmlinuz-6.1.0-57-cloud-arm64" || len(got.libraries) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.Remove(got.kernel); err != nil {
		t.Fatal(err)
	}
	if _, err := findKit(dir); err == nil || !strings.Contains(err.Error(), "remove that folder") {
		t.Errorf("error %v", err)
	}
}

// TestCPIO makes the archive of a/b with the text "hello" and of the empty c. Dots
// are zeros.
func TestCPIO(t *testing.T) {
	t.Parallel()
	want := strings.Join([]string{
		"07070100000001000041ED0000000000000000000000010000000000000000000000000000000000000000000000000000000200000000a.",
		"07070100000002000081ED0000000000000000000000010000000000000005000000000000000000000000000000000000000400000000a/b...hello...",
		"07070100000003000081ED0000000000000000000000010000000000000000000000000000000000000000000000000000000200000000c.",
		"07070100000004000000000000000000000000000000010000000000000000000000000000000000000000000000000000000B00000000TRAILER!!!....",
	}, "")
	got := cpio(map[string][]byte{"a/b": []byte("hello"), "c": nil})
	if diff := cmp.Diff(want, strings.ReplaceAll(string(got), "\x00", ".")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
