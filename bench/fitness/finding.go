// Package fitness says whether a machine is fit to measure on, before and after a
// measurement. Each doubt is a finding with a stable code and a hint. What cannot
// be read is listed as unchecked.
package fitness

import (
	"fmt"
	"slices"

	"armrepro/bench/machine"
)

// Finding is something about the machine that a reader of its figures must know.
type Finding struct {
	// Code is one of the codes below. It is stable.
	Code string
	// Text says what was found.
	Text string
	// Hint says what to do about it.
	Hint string
	// Invalid marks a finding that makes a result invalid.
	Invalid bool
}

// when is a finding if it is true.
func when(it bool, code, hint, format string, args ...any) *Finding {
	if !it {
		return nil
	}
	return &Finding{Code: code, Text: fmt.Sprintf(format, args...), Hint: hint, Invalid: code == EmulatedCPU}
}

// made keeps the findings that there are.
func made(all ...*Finding) []Finding {
	var findings []Finding
	for _, f := range all {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings
}

// The codes of findings. FindingKinds says what each stands for.
const (
	EmulatedCPU    = "emulated-cpu"
	UnknownCPU     = "unknown-cpu"
	Governor       = "governor"
	FrequencyLimit = "frequency-limit"
	Turbo          = "turbo"
	CPUQuota       = "cpu-quota"
	FewCores       = "few-cores"
	SharedCores    = "shared-cores"
	SharedThreads  = "shared-threads"
	LargePages     = "large-pages"
	LowMemory      = "low-memory"
	LowDisk        = "low-disk"
	FewOpenFiles   = "few-open-files"
	ShortBacklog   = "short-backlog"
	PortRange      = "port-range"
	TimeWait       = "time-wait"

	// These come from changes between two snapshots.

	Steal             = "steal"
	OtherLoad         = "other-load"
	Throttled         = "throttled"
	Swapping          = "swapping"
	ClockStep         = "clock-step"
	FrequencyMoved    = "frequency-moved"
	ThermalThrottling = "thermal-throttling"
)

// FindingKind is a code and what it stands for, in a line.
type FindingKind struct{ Code, About string }

// FindingKinds is every code of a finding: those of Check, then those of Moved.
var FindingKinds = []FindingKind{
	{EmulatedCPU, "the CPU is emulated; the result is invalid"},
	{UnknownCPU, "neither the core nor the product of the CPU is known"},
	{Governor, "a frequency governor other than performance"},
	{FrequencyLimit, "a CPU is limited below its highest clock"},
	{Turbo, "a CPU may run above its rated clock"},
	{CPUQuota, "a control group limits the CPU time"},
	{FewCores, "no core is left for the gateway"},
	{SharedCores, "gateway, upstream and load generator share cores"},
	{SharedThreads, "the second thread of the gateway's core runs other processes"},
	{LargePages, "memory pages are not 4 KiB"},
	{LowMemory, "too little memory is left"},
	{LowDisk, "too little space for temporary files"},
	{FewOpenFiles, "the limit on open files is too low for the connections"},
	{ShortBacklog, "more connections than may wait to be accepted (somaxconn)"},
	{PortRange, "too few ports for outgoing connections, or they include ports of the run"},
	{TimeWait, "closed connections still hold ports (TIME_WAIT)"},
	{Steal, "the hypervisor gave CPU time to others"},
	{OtherLoad, "other processes used CPU time"},
	{Throttled, "a control group exhausted its CPU quota"},
	{Swapping, "memory was swapped to or from disk"},
	{ClockStep, "the system clock was set, or the machine was paused"},
	{FrequencyMoved, "the CPU became slower, or its limit changed"},
	{ThermalThrottling, "the CPU got too hot and slowed down"},
}

// FindingCodes lists all codes of findings.
func FindingCodes() []string {
	var codes []string
	for _, k := range FindingKinds {
		codes = append(codes, k.Code)
	}
	return codes
}

// Unchecked is a check that could not be made.
type Unchecked struct {
	// Code is that of the finding it would have made.
	Code string `json:"code"`
	// Why says what could not be read.
	Why string `json:"why"`
}

// checkNeeds maps a check to the evidence fields it needs. A snapshot records its
// own gaps.
var checkNeeds = map[string][]string{
	CPUQuota:      {"quota_cores"},
	FewCores:      {"cores", "cpus_allowed", "quota_cores"},
	SharedCores:   {"cores", "cpus_allowed", "quota_cores"},
	SharedThreads: {"threads_per_core"},
	LargePages:    {"page_size"},
}

// UncheckedOf lists the checks that Check and Moved cannot make because evidence or
// snapshot lacks a fact, in the order of FindingCodes.
func UncheckedOf(evidence []machine.Evidence, s Snapshot) []Unchecked {
	var all []Unchecked
	for _, code := range FindingCodes() {
		why := s.unread[code]
		for _, e := range evidence {
			if why == "" && e.Value == "" && slices.Contains(checkNeeds[code], e.Field) {
				why = e.Field + ": " + e.Why
			}
		}
		if why != "" {
			all = append(all, Unchecked{code, why})
		}
	}
	return all
}
