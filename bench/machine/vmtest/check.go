package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/machine"
	"armrepro/bench/machine/vmtest/transcript"
)

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

func (o *outcome) failf(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// require notes what is wrong unless ok.
func (o *outcome) require(ok bool, format string, args ...any) {
	if !ok {
		o.failf(format, args...)
	}
}

// expect notes a difference.
func expect[T comparable](o *outcome, field string, got, want T) {
	if got != want {
		o.failf("%s is %#v, want %#v", field, got, want)
	}
}

// check compares what a guest's commands did with what they have to do.
func (g guest) check(done []transcript.Command) outcome {
	var o outcome
	for i, line := range g.commands() {
		if i >= len(done) || done[i].Line != line {
			o.failf("%q did not run", line)
			continue
		}
		c := done[i]
		for _, secret := range secrets {
			if strings.Contains(strings.ToLower(c.Stdout+c.Stderr), secret) {
				o.failf("%q tells %s", line, secret)
			}
		}
		switch line {
		case describe:
			o.checkMachine(c, g.want)
		case measure:
			o.checkRun(c)
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
	expect(o, "cpu.core", m.CPU.Core, want.core)
	expect(o, "cpu.product", m.CPU.Product, want.product)
	expect(o, "cloud", m.Cloud, want.cloud)
	expect(o, "instance", m.Instance, want.instance)
	expect(o, "hypervisor", m.Hypervisor, want.hypervisor)
	expect(o, "container", m.Container, "none")
	expect(o, "arch", m.Arch, guestArch)
	expect(o, "page_size", m.PageSize, pageSize)
	expect(o, "cores", m.Cores, guestCores)
	expect(o, "usable_cores", m.UsableCores, guestCores)
	expect(o, "emulated", m.Emulated, true)
	o.require(m.EmulatedWhy != "", "emulated_why is empty")
	// A translated loop has no frequency.
	expect(o, "cpu.frequency.measured_mhz", m.CPU.Frequency.MeasuredMHz, 0)
	o.require(slices.Contains(m.CPU.Features, "crc32"), "cpu.features is %q, without crc32", m.CPU.Features)
	o.require(strings.HasSuffix(m.Kernel, "-cloud-"+guestArch), "kernel is %q, not that of %s", m.Kernel, kernelPackage)
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
	expect(o, "verdict", r.Verdict, bench.Invalid)
	emulated := func(w bench.Warning) bool { return w.Code == "emulated-cpu" && w.Invalid }
	o.require(slices.ContainsFunc(r.Warnings, emulated), "no warning says that the CPU is emulated")
	expect(o, "gateway.kind", r.Gateway.Kind, "builtin")
	expect(o, "machine.cpu.core of the run", r.Machine.CPU.Core, o.machine.CPU.Core)
	expect(o, "number of scenarios", len(r.Scenarios), 2)
	for _, s := range r.Scenarios {
		if len(s.Runs) != 1 {
			o.failf("%s has %d runs, want 1", s.Name, len(s.Runs))
			continue
		}
		run := s.Runs[0]
		// On a busy host answers may be late; there is no excuse for others.
		e := run.Errors
		o.require(e.Total() == e.Timeout, "%s has errors other than timeouts: %+v", s.Name, e)
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
		o.failf("%q: exit code %d, want %d: %s", c.Line, c.Exit, exit, strings.TrimSpace(c.Stderr))
	} else if err != nil {
		o.failf("%q: read output: %v", c.Line, err)
	}
	return err == nil
}
