// Package machine names the machine it runs on and says whether it is fit to
// measure on. It parses files under an fs.FS root, so a recorded tree of
// another machine reads the same as the live one.
//
// Serial numbers, uuids and instance ids are never read into a result.
package machine

// Machine is what the figures were measured on. Empty strings, missing numbers
// and empty lists mean unknown.
type Machine struct {
	CPU CPU `json:"cpu"`
	// Cloud is AWS, Azure, GCP, OCI, Alibaba, ….
	Cloud string `json:"cloud"`
	// Instance is the cloud's name of the machine type, such as c7g.large.
	Instance string `json:"instance"`
	// Arch is the architecture as Go names it: arm64, amd64.
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	// OS is the distribution's name and version.
	OS string `json:"os,omitempty"`
	// PageSize is in bytes.
	PageSize int `json:"page_size,omitzero"`
	// Cores counts the logical CPUs that the machine has online.
	Cores int `json:"cores,omitzero"`
	// Allowed is the list of logical CPUs that this process may run on, in
	// the kernel's format: 0-3,8.
	Allowed string `json:"cpus_allowed,omitempty"`
	// QuotaCores is the processor time that the control group may use, in
	// cores; missing where there is no limit.
	QuotaCores float64 `json:"quota_cores,omitzero"`
	// UsableCores is what is left of Cores by Allowed and QuotaCores.
	UsableCores    float64 `json:"usable_cores,omitzero"`
	ThreadsPerCore int     `json:"threads_per_core,omitzero"`
	NUMANodes      int     `json:"numa_nodes,omitzero"`
	MemoryBytes    uint64  `json:"memory_bytes,omitzero"`
	// Hypervisor is KVM, Xen, Hyper-V, …, or none on bare metal.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Container is docker, podman, kubernetes, WSL2, …, or none.
	Container string `json:"container,omitempty"`
	// Emulated says that the instructions of this CPU are translated by
	// another one. Figures measured on it say nothing about it.
	Emulated bool `json:"emulated"`
	// EmulatedWhy is what shows it.
	EmulatedWhy string `json:"emulated_why,omitempty"`
	// Mitigations is what the kernel does about each flaw of the CPU, of
	// those that the CPU has.
	Mitigations map[string]string `json:"mitigations,omitempty"`
}

// MIDR is the fields of MIDR_EL1 as /proc/cpuinfo prints them; they are empty on
// other architectures than Arm's.
type MIDR struct {
	Implementer string `json:"implementer"`
	Part        string `json:"part"`
	Variant     string `json:"variant"`
	Revision    string `json:"revision"`
}

// CPU identifies the processor.
type CPU struct {
	MIDR
	// Vendor is the company behind the core, such as Arm, Ampere or Intel.
	Vendor string `json:"vendor,omitempty"`
	// Core is the core's name, such as Neoverse N1 or Zen 3.
	Core string `json:"core"`
	// Product is what the chip is sold as, such as Graviton3. Where the
	// evidence fits two it names both: Ampere Altra or Altra Max. On x86 it
	// is the model name.
	Product string `json:"product"`
	// Family, Model and Stepping identify an x86 processor.
	Family   int `json:"family,omitzero"`
	Model    int `json:"model,omitzero"`
	Stepping int `json:"stepping,omitzero"`
	// BogoMIPS is twice the frequency of the timer in MHz on arm64.
	BogoMIPS float64 `json:"bogomips,omitzero"`
	// Kinds lists the kinds of core where there are several, the strongest
	// first, or the most numerous where the kernel does not tell their
	// capacity. The fields above describe the first.
	Kinds     []Kind    `json:"kinds,omitempty"`
	Caches    []Cache   `json:"caches,omitempty"`
	Frequency Frequency `json:"frequency"`
	// Features are those of the CPU's features that matter to a gateway, as
	// the kernel names them; nil means unknown.
	Features []string `json:"features"`
}

// Kind is one kind of core of several in a machine.
type Kind struct {
	MIDR
	Core string `json:"core"`
	// CPUs lists the logical CPUs of this kind in the kernel's format.
	CPUs  string `json:"cpus"`
	Count int    `json:"count"`
}

// Cache is a cache as one logical CPU sees it.
type Cache struct {
	Level int `json:"level"`
	// Type is data, instruction or unified.
	Type      string `json:"type"`
	SizeBytes uint64 `json:"size_bytes"`
	// SharedBy counts the logical CPUs that share it.
	SharedBy int `json:"shared_by,omitzero"`
}

// Frequency is how fast the CPU runs, in MHz.
type Frequency struct {
	// MeasuredMHz is the best of several short runs of a calibrated loop on
	// one core.
	MeasuredMHz float64 `json:"measured_mhz,omitzero"`
	// ClaimedMHz is what the kernel or the firmware says; ClaimedBy is
	// where.
	ClaimedMHz float64 `json:"claimed_mhz,omitzero"`
	ClaimedBy  string  `json:"claimed_by,omitempty"`
}

// Evidence is what a conclusion about the machine rests on.
type Evidence struct {
	// Field is the JSON name of what is concluded, such as cpu.core.
	Field string `json:"field"`
	// Value is the conclusion; empty means unknown.
	Value string `json:"value"`
	// Why is the fact it follows from and where that was read, or the
	// reason why it is unknown.
	Why string `json:"why"`
}
