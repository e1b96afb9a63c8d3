// Package machine names the machine it runs on and says whether it is fit to
// measure on. It parses files under an fs.FS root, so a recorded tree of
// another machine reads the same as the live one.
package machine

// Machine is what the figures were measured on. Empty strings mean unknown.
type Machine struct {
	CPU         CPU    `json:"cpu"`
	Cloud       string `json:"cloud"`
	Instance    string `json:"instance"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
	PageSize    int    `json:"page_size"`
	Cores       int    `json:"cores"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// CPU identifies the processor. Implementer, Part, Variant and Revision are
// the fields of MIDR_EL1 in hexadecimal as /proc/cpuinfo prints them.
type CPU struct {
	Implementer string `json:"implementer"`
	Part        string `json:"part"`
	Variant     string `json:"variant"`
	Revision    string `json:"revision"`
	Core        string `json:"core"`
	Product     string `json:"product"`
}
