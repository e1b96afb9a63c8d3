// Package fitness says whether a machine is fit to measure on, before a
// measurement and after it: each doubt is a finding with a stable code and what to
// do about it. What cannot be read is no finding, and is listed as unchecked.
package fitness

import "fmt"

// Finding is something about the machine that the reader of its figures has to
// know.
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

// found makes a finding.
func found(code, hint, format string, args ...any) *Finding {
	return &Finding{Code: code, Text: fmt.Sprintf(format, args...), Hint: hint}
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

	// These come of what changed between two snapshots.

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

// FindingKinds lists all codes of findings: those of Check, then those of Moved.
func FindingKinds() []FindingKind {
	return []FindingKind{
		{EmulatedCPU, "another CPU translates this one's instructions; makes a result invalid"},
		{UnknownCPU, "neither core nor product is known"},
		{Governor, "a frequency governor other than performance"},
		{FrequencyLimit, "a CPU is limited to less than its highest clock"},
		{Turbo, "a CPU runs above its rated clock while it may"},
		{CPUQuota, "a control group limits the CPU time"},
		{FewCores, "no core is left for the gateway"},
		{SharedCores, "gateway, upstream and load generator share cores"},
		{SharedThreads, "the gateway's core runs other processes on its second thread"},
		{LargePages, "pages of another size than 4 KiB"},
		{LowMemory, "too little memory is left"},
		{LowDisk, "too little space for temporary files"},
		{FewOpenFiles, "the connections reach the limit on open files"},
		{ShortBacklog, "more connections open at once than may wait to be accepted (somaxconn)"},
		{PortRange, "too few ports for outgoing connections, or used ones among them"},
		{TimeWait, "ended connections still hold the ports (TIME_WAIT)"},
		{Steal, "the hypervisor gave CPU time to others"},
		{OtherLoad, "other processes used CPU time"},
		{Throttled, "a control group used up its CPU quota"},
		{Swapping, "memory was moved to or from disk"},
		{ClockStep, "the system clock was set, or the machine was paused"},
		{FrequencyMoved, "the CPU became slower, or its limit changed"},
		{ThermalThrottling, "the CPU got too hot and slowed down"},
	}
}

// FindingCodes lists all codes of findings.
func FindingCodes() []string {
	var codes []string
	for _, k := range FindingKinds() {
		codes = append(codes, k.Code)
	}
	return codes
}
