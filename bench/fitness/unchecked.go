package fitness

import (
	"slices"

	"armrepro/bench/machine"
)

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
