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

// checkNeeds are the facts about the machine, by their field in the evidence,
// that a check needs. What it needs of a snapshot, that notes itself.
var checkNeeds = map[string][]string{
	CPUQuota:      {"quota_cores"},
	FewCores:      {"cores", "cpus_allowed", "quota_cores"},
	SharedCores:   {"cores", "cpus_allowed", "quota_cores"},
	SharedThreads: {"threads_per_core"},
	LargePages:    {"page_size"},
}

// UncheckedOf lists the checks that neither Check nor Moved can make, for want of
// what evidence and snapshot do not tell. It is sorted as FindingCodes is.
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
