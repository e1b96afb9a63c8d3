package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
	"armrepro/bench/machine/vmtest/transcript"
)

// What every guest has.
const (
	guestCores = 2
	guestMiB   = 2048
)

// The commands that guests run.
const (
	describe = "armrepro machine --output json --explain"
	measure  = "armrepro run --gateway builtin --duration 4s --warmup 0 --runs 1 --output json"
)

// guest is a machine to boot and what armrepro has to say about it.
type guest struct {
	name string
	// cpu is the emulator's model.
	cpu      string
	firmware bool
	// smbios are the emulator's descriptions of structures.
	smbios []string
	// files are added to the guest's root folder.
	files map[string]string
	// measures says that a short run follows.
	measures bool
	want     identity
}

func (g guest) commands() []string {
	if g.measures {
		return []string{describe, measure}
	}
	return []string{describe}
}

// identity is what a guest is known by. Empty means unknown. All guests are alike in
// what is behind Hypervisor.
type identity struct {
	Core, Product, Cloud, Instance, Hypervisor, Container, Arch string

	PageSize, Cores int
	UsableCores     float64
	Emulated        bool
}

func identityOf(m machine.Machine) identity {
	return identity{
		m.CPU.Core, m.CPU.Product, m.Cloud, m.Instance, m.Hypervisor, m.Container, m.Arch,
		m.PageSize, m.Cores, m.UsableCores, m.Emulated,
	}
}

// secrets are what identifies one machine among all of its kind. Guests have
// them where real ones do, and they must not show up anywhere.
var secrets = []string{"i-0123456789abcdef0", "ec2secretserial", "ec2fe1d2-0000-4000-8000-00000000beef", "ocid1.instance.secret"}

// guests is every machine that is booted. The strings are those of the clouds
// themselves; type 0 is the firmware, 1 the system, 2 the board, 3 the chassis
// and 4 the processor.
var guests = []guest{
	{
		name: "c6g.large", cpu: "neoverse-n1", firmware: true,
		smbios: []string{
			"type=0,vendor=Amazon EC2,version=1.0,date=11/1/2018",
			"type=1,manufacturer=Amazon EC2,product=c6g.large,serial=ec2secretserial,uuid=ec2fe1d2-0000-4000-8000-00000000beef",
			"type=2,manufacturer=Amazon EC2,asset=i-0123456789abcdef0",
			"type=3,manufacturer=Amazon EC2,asset=Amazon EC2",
			"type=4,manufacturer=AWS,version=AWS Graviton2,serial=ec2secretserial",
		},
		measures: true,
		want:     identity{Core: "Neoverse N1", Product: "Graviton2", Cloud: "AWS", Instance: "c6g.large", Hypervisor: "KVM"},
	},
	{
		name: "OCI A1", cpu: "neoverse-n1", firmware: true,
		smbios: []string{
			"type=0,vendor=EFI Development Kit II / OVMF,version=1.5.1,date=06/16/2021",
			"type=1,manufacturer=QEMU,product=KVM Virtual Machine,version=virt-4.2,serial=ocid1.instance.secret",
			"type=3,manufacturer=QEMU,asset=OracleCloud.com",
		},
		// What cloud-init leaves behind tells the instance type.
		files: map[string]string{
			"run/cloud-init/instance-data.json": `{"ds": {"id": "ocid1.instance.secret", "shape": "VM.Standard.A1.Flex"}}`,
		},
		// An Altra is known by its timer, which is the emulator's own here.
		want: identity{Core: "Neoverse N1", Cloud: "OCI", Instance: "VM.Standard.A1.Flex", Hypervisor: "KVM"},
	},
	{
		// The emulator calls itself QEMU; a uuid alone is no proof of AWS.
		name: "no cloud", cpu: "cortex-a72", firmware: true,
		smbios: []string{"type=1,uuid=ec2fe1d2-0000-4000-8000-00000000beef"},
		want:   identity{Core: "Cortex-A72", Hypervisor: "QEMU"},
	},
	{
		// Pointer authentication in its usual cipher takes most of the time.
		name: "no firmware", cpu: "max,pauth-impdef=on",
		want: identity{Core: "QEMU max", Hypervisor: "QEMU"},
	},
}

// exitInvalid is armrepro's exit code for figures that do not count.
const exitInvalid = 3

// outcome is what was seen in a guest.
type outcome struct {
	machine machine.Machine
	// result is nil unless the guest measures.
	result *bench.Result
	// wrong lists what is not as it has to be.
	wrong []string
}

// require notes what is wrong unless ok.
func (o *outcome) require(ok bool, format string, args ...any) {
	if !ok {
		o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
	}
}

// String is what the guest said of itself, and what it measured.
func (o outcome) String() string {
	text := fmt.Sprintf("%+v", identityOf(o.machine))
	if o.result == nil {
		return text
	}
	for _, s := range o.result.Scenarios {
		if s.QPS != nil {
			text += fmt.Sprintf(", %s %.0f requests/s", s.Name, *s.QPS)
		}
	}
	return text + ", verdict " + string(o.result.Verdict)
}

// check compares what a guest's commands did with what they have to do.
func (g guest) check(done []transcript.Command) outcome {
	var o outcome
	for i, line := range g.commands() {
		if i >= len(done) || done[i].Line != line {
			o.require(false, "%q did not run", line)
			continue
		}
		c := done[i]
		for _, secret := range secrets {
			o.require(!strings.Contains(strings.ToLower(c.Stdout+c.Stderr), secret), "%q tells %s", line, secret)
		}
		if line == measure {
			o.checkRun(c)
		} else {
			o.checkMachine(c, g.want)
		}
	}
	return o
}

func (o *outcome) checkMachine(c transcript.Command, want identity) {
	var doc struct {
		machine.Machine
		Evidence []machine.Evidence `json:"evidence"`
	}
	if !o.decode(c, 0, &doc) {
		return
	}
	o.machine = doc.Machine
	m := doc.Machine
	want.Container, want.Arch, want.PageSize, want.Cores, want.UsableCores, want.Emulated = "none", guestArch, 4096, guestCores, guestCores, true
	o.require(identityOf(m) == want, "it is %+v, not the machine %+v", identityOf(m), want)
	o.require(m.EmulatedWhy != "", "emulated_why is empty")
	// A translated loop has no frequency.
	o.require(m.CPU.Frequency.MeasuredMHz == 0, "a frequency was measured")
	o.require(slices.Contains(m.CPU.Features, "crc32"), "cpu.features is %q, without crc32", m.CPU.Features)
	o.require(strings.HasSuffix(m.Kernel, "-cloud-"+guestArch), "kernel is %q, not the guest's", m.Kernel)
	// The kernel keeps some of it to itself.
	memory := m.MemoryBytes >> 20
	o.require(memory > guestMiB*8/10 && memory <= guestMiB, "memory_bytes is %d MiB of %d", memory, guestMiB)
	for _, field := range []string{"cpu.core", "cpu.product", "cloud", "instance", "hypervisor", "emulated"} {
		told := func(e machine.Evidence) bool { return e.Field == field && e.Why != "" }
		o.require(slices.ContainsFunc(doc.Evidence, told), "there is no evidence for %s", field)
	}
}

// checkRun wants figures, and that they do not count.
func (o *outcome) checkRun(c transcript.Command) {
	var r bench.Result
	if !o.decode(c, exitInvalid, &r) {
		return
	}
	o.result = &r
	o.require(r.Verdict == bench.Invalid, "verdict is %q", r.Verdict)
	emulated := func(w bench.Warning) bool { return w.Code == fitness.EmulatedCPU && w.Invalid }
	o.require(slices.ContainsFunc(r.Warnings, emulated), "no warning says that the CPU is emulated")
	o.require(r.Machine.CPU.Core == o.machine.CPU.Core, "the run's core is %q", r.Machine.CPU.Core)
	o.require(len(r.Scenarios) == 2, "there are %d scenarios, not 2", len(r.Scenarios))
	for _, s := range r.Scenarios {
		if len(s.Runs) != 1 {
			o.require(false, "%s has %d runs, not 1", s.Name, len(s.Runs))
			continue
		}
		run := s.Runs[0]
		// On a busy host answers may be late; there is no excuse for others.
		o.require(run.Errors.Total() == run.Errors.Timeout, "%s has errors other than timeouts: %+v", s.Name, run.Errors)
		o.require(run.Requests > 0 && s.QPS != nil && *s.QPS > 0, "%s has no requests", s.Name)
		o.require(run.Latency.P50 != nil && run.Latency.P99 != nil && s.LatencyMs != nil, "%s has no latency", s.Name)
		o.require(run.CPU.Gateway != nil && *run.CPU.Gateway > 0, "%s has no CPU time of the gateway", s.Name)
		o.require(run.RSS.Gateway != nil && *run.RSS.Gateway > 0, "%s has no memory of the gateway", s.Name)
	}
}

// decode reads the JSON of a command that has to end with the given exit code.
func (o *outcome) decode(c transcript.Command, exit int, doc any) bool {
	err := json.Unmarshal([]byte(c.Stdout), doc)
	if c.Exit != exit {
		o.require(false, "%q: exit code %d, want %d: %s", c.Line, c.Exit, exit, strings.TrimSpace(c.Stderr))
	} else if err != nil {
		o.require(false, "%q: read output: %v", c.Line, err)
	}
	return err == nil
}
