package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"armrepro/bench/machine"
)

// WriteMachine prints what the machine is, one aligned line a fact, and then the
// evidence.
func WriteMachine(w io.Writer, m machine.Machine, evidence []machine.Evidence) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range append(machineFacts(m),
		fact{"caches", caches(m.CPU.Caches)}, fact{"features", features(m)}, fact{"NUMA nodes", positive(m.NUMANodes, strconv.Itoa)},
	) {
		fmt.Fprintf(t, "%s\t%s\n", f.label, clean(orUnknown(f.value)))
	}
	if m.Emulated {
		fmt.Fprint(t, "\ta result measured here is invalid\n")
	}
	if len(evidence) > 0 {
		fmt.Fprintln(t)
	}
	for _, e := range evidence {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Field, clean(orUnknown(known(e.Value))), clean(e.Why))
	}
	return t.Flush()
}

// orUnknown spells out the mark for what is missing.
func orUnknown(value string) string {
	if value == missing {
		return "unknown"
	}
	return value
}

func caches(list []machine.Cache) string {
	return known(strings.Join(each(list, func(c machine.Cache) string {
		text := fmt.Sprintf("L%d", c.Level)
		if c.Type == "data" || c.Type == "instruction" {
			text += c.Type[:1]
		}
		text += " " + size(c.SizeBytes)
		if c.SharedBy > 1 {
			text += fmt.Sprintf(" (shared by %d)", c.SharedBy)
		}
		return text
	}), ", "))
}

// features lists those that move a figure, and which of them are not there.
func features(m machine.Machine) string {
	if m.CPU.Features == nil {
		return missing
	}
	absent := slices.DeleteFunc(slices.Clone(machine.FeatureNames(m.Arch)), func(name string) bool {
		return slices.Contains(m.CPU.Features, name)
	})
	return join("; ", strings.Join(m.CPU.Features, " "), after("without ", strings.Join(absent, " ")))
}
