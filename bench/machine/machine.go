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
	Cores       int    `json:"cores,omitzero"`
	MemoryBytes uint64 `json:"memory_bytes,omitzero"`
}

// CPU identifies the processor. Implementer, Part, Variant and Revision are
// the fields of MIDR_EL1 as /proc/cpuinfo prints them; they are empty on
// other architectures than Arm's.
type CPU struct {
	Implementer string `json:"implementer"`
	Part        string `json:"part"`
	Variant     string `json:"variant"`
	Revision    string `json:"revision"`
	// Vendor is the company behind the core, such as Arm, Ampere or Intel.
	Vendor string `json:"vendor,omitempty"`
	// Core is the core's name, such as Neoverse N1 or Zen 3.
	Core string `json:"core"`
	// Product is what the chip is sold as, such as Graviton3. Where the
	// evidence fits two it names both: Ampere Altra or Altra Max. On x86 it
	// is the model name.
	Product string `json:"product"`
	// BogoMIPS is twice the frequency of the timer in MHz on arm64.
	BogoMIPS float64 `json:"bogomips,omitzero"`
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
