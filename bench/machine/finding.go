package machine

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

// The codes of findings that Check makes, before anything is measured.
const (
	// EmulatedCPU is an Arm or x86 CPU that another one translates. It makes
	// a result invalid.
	EmulatedCPU = "emulated-cpu"
	// UnknownCPU is a processor whose core is in no table, so that its
	// figures cannot be set beside others.
	UnknownCPU = "unknown-cpu"
	// Governor is a frequency governor other than performance: the CPU runs
	// slower until the load has lasted.
	Governor = "governor"
	// FrequencyLimit is a CPU that may not run as fast as it can.
	FrequencyLimit = "frequency-limit"
	// Turbo is a CPU that runs above its rated frequency while the other
	// cores and the temperature allow it.
	Turbo = "turbo"
	// CPUQuota is a control group that limits the CPU time to less than the
	// CPUs that may be used.
	CPUQuota = "cpu-quota"
	// FewCores is a machine that has no core for the gateway beside those
	// for the rest.
	FewCores = "few-cores"
	// SharedCores is a gateway that shares its cores with the load generator
	// and the upstream.
	SharedCores = "shared-cores"
	// SharedThreads is a gateway whose core runs something else on its other
	// hardware thread.
	SharedThreads = "shared-threads"
	// LargePages are pages of memory of another size than 4 KiB, the size
	// that nearly all published figures were measured with.
	LargePages = "large-pages"
	// LowMemory is too little memory for the parts of a run.
	LowMemory = "low-memory"
	// LowDisk is too little free space for the parts of a run.
	LowDisk = "low-disk"
	// FewOpenFiles is a limit on open files that the connections would reach.
	FewOpenFiles = "few-open-files"
	// ShortBacklog is a limit on waiting connections (somaxconn) below the
	// number that the load opens at once.
	ShortBacklog = "short-backlog"
	// PortRange is a range of ports for outgoing connections that is too
	// small, or that has a port in it which is listened on.
	PortRange = "port-range"
	// TimeWait is a machine whose outgoing ports are taken by connections
	// that have ended (TIME_WAIT).
	TimeWait = "time-wait"
)

// The codes of findings that Moved makes, from what changed meanwhile.
const (
	// Steal is CPU time that the hypervisor gave to others.
	Steal = "steal"
	// OtherLoad is CPU time that processes other than the measured ones
	// used.
	OtherLoad = "other-load"
	// Throttled is time in which a control group's quota was used up.
	Throttled = "throttled"
	// Swapping is memory that was moved to or from disk.
	Swapping = "swapping"
	// ClockStep is a system clock that was set meanwhile.
	ClockStep = "clock-step"
	// FrequencyMoved is a CPU that is slower, or allowed less, than before.
	FrequencyMoved = "frequency-moved"
	// ThermalThrottling is a CPU that slowed down because it got too hot.
	ThermalThrottling = "thermal-throttling"
)

// FindingKind is a code and what it stands for, in a line.
type FindingKind struct{ Code, About string }

// FindingKinds lists all codes of findings.
func FindingKinds() []FindingKind {
	return []FindingKind{
		{EmulatedCPU, "another CPU translates this one's instructions; makes a result invalid"},
		{UnknownCPU, "neither core nor product is known"},
		{Governor, "a frequency governor other than performance"},
		{FrequencyLimit, "a CPU may not run as fast as it can"},
		{Turbo, "a CPU runs above its rated frequency for a while"},
		{CPUQuota, "a control group limits the CPU time"},
		{FewCores, "no core for the gateway beside those for the rest"},
		{SharedCores, "gateway, upstream and load generator share cores"},
		{SharedThreads, "the gateway's core runs others on its second thread"},
		{LargePages, "pages of another size than 4 KiB"},
		{LowMemory, "too little memory is left"},
		{LowDisk, "too little space for temporary files"},
		{FewOpenFiles, "the connections reach the limit on open files"},
		{ShortBacklog, "more connections open at once than may wait (somaxconn)"},
		{PortRange, "too few ports, or used ones among them, for outgoing connections"},
		{TimeWait, "connections that have ended hold the ports (TIME_WAIT)"},
		{Steal, "the hypervisor gave CPU time to others"},
		{OtherLoad, "other processes used CPU time"},
		{Throttled, "a control group's quota was used up"},
		{Swapping, "memory was moved to or from disk"},
		{ClockStep, "the system clock was set, or the machine was paused"},
		{FrequencyMoved, "the CPU became slower, or may run less fast, than before"},
		{ThermalThrottling, "the CPU was too hot"},
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
