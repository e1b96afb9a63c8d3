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
