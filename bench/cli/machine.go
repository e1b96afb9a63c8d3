package cli

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench/machine"
)

func newMachine() *cobra.Command {
	root, output, explain := "/", "text", false
	cmd := &cobra.Command{
		Use:   "machine [flags]",
		Short: "say what machine this is",
		Long:  machineAbout,
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if root == "" {
				return usagef("--root: no folder is given")
			}
			m, evidence, err := detect(root)
			if err != nil {
				return err
			}
			if !explain {
				evidence = nil
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), struct {
					machine.Machine
					Evidence []machine.Evidence `json:"evidence,omitempty"`
				}{m, evidence})
			}
			return writeMachine(cmd.OutOrStdout(), m, evidence)
		},
	}
	group(cmd, "Flags", func(fs *pflag.FlagSet) {
		fs.StringVar(&root, "root", root, "`DIR` read proc, sys, etc and run of this folder")
		addTextOrJSON(fs, &output)
		fs.BoolVar(&explain, "explain", false, "print the evidence for every line")
	})
	return cmd
}

// detect describes the machine that the tree at dir belongs to. Links in a
// recorded tree cannot lead out of it, to the machine that reads it.
func detect(dir string) (machine.Machine, []machine.Evidence, error) {
	if filepath.Clean(dir) == "/" {
		m, evidence := machine.Detect(os.DirFS("/"), machine.Options{Live: machine.LiveFacts(), Calibrate: true})
		return m, evidence, nil
	}
	tree, err := os.OpenRoot(dir)
	if err != nil {
		return machine.Machine{}, nil, fmt.Errorf("read the recorded machine: %w", err)
	}
	defer tree.Close()
	_, procErr := fs.Stat(tree.FS(), "proc")
	_, sysErr := fs.Stat(tree.FS(), "sys")
	if procErr != nil && sysErr != nil {
		return machine.Machine{}, nil, fmt.Errorf("read the recorded machine: %s has neither proc nor sys", dir)
	}
	m, evidence := machine.Detect(tree.FS(), machine.Options{})
	return m, evidence, nil
}

// writeMachine prints one aligned line a subject, then the evidence.
func writeMachine(w io.Writer, m machine.Machine, evidence []machine.Evidence) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, line := range []struct{ label, text string }{
		{"CPU", orUnknown(m.CPU.Product)},
		{"Core", coreLine(m.CPU)},
		{"Cloud", cloudLine(m)},
		{"System", systemLine(m)},
		{"Cores", coresLine(m)},
		{"Memory", memoryLine(m.MemoryBytes)},
		{"Frequency", frequencyLine(m.CPU.Frequency)},
		{"Caches", cachesLine(m.CPU.Caches)},
		{"Features", featuresLine(m)},
		{"Under", underLine(m)},
		{"Mitigated", orUnknown(m.Mitigated())},
	} {
		fmt.Fprintf(t, "%s\t%s\n", line.label, line.text)
	}
	if m.Emulated {
		fmt.Fprintf(t, "Emulated\t%s\n\ta result measured here is invalid\n", m.EmulatedWhy)
	}
	if len(evidence) > 0 {
		fmt.Fprintln(t)
	}
	for _, e := range evidence {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Field, orUnknown(e.Value), e.Why)
	}
	return t.Flush()
}

func coreLine(c machine.CPU) string {
	name := orUnknown(c.Core)
	if c.Core != "" && !strings.HasPrefix(c.Core, c.Vendor) {
		name = joinNonEmpty(" ", c.Vendor, c.Core)
	}
	switch {
	case len(c.Kinds) > 0:
		var kinds []string
		for _, k := range c.Kinds {
			kinds = append(kinds, fmt.Sprintf("%d × %s (CPUs %s)", k.Count, orUnknown(k.Core), k.CPUs))
		}
		return strings.Join(kinds, ", ")
	case c.Implementer != "":
		variant, _ := strconv.ParseUint(c.Variant, 0, 8)
		return fmt.Sprintf("%s r%dp%s (implementer %s, part %s)", name, variant, c.Revision, c.Implementer, c.Part)
	case c.Family != 0:
		return fmt.Sprintf("%s (family %d, model %d, stepping %d)", name, c.Family, c.Model, c.Stepping)
	}
	return name
}

func cloudLine(m machine.Machine) string {
	if m.Cloud == "" && m.Instance == "" {
		return orUnknown("")
	}
	return orUnknown(m.Cloud) + ", instance type " + orUnknown(m.Instance)
}

func systemLine(m machine.Machine) string {
	pages := "page size unknown"
	if m.PageSize > 0 {
		pages = strconv.Itoa(m.PageSize>>10) + " KiB pages"
	}
	return joinNonEmpty(", ", orUnknown(m.Arch), "Linux "+orUnknown(m.Kernel), pages, m.OS)
}

func coresLine(m machine.Machine) string {
	if m.Cores == 0 {
		return orUnknown("")
	}
	parts := []string{strconv.Itoa(m.Cores)}
	if m.UsableCores < float64(m.Cores) {
		var limits []string
		if m.Allowed != "" {
			limits = append(limits, "CPUs "+m.Allowed)
		}
		if m.QuotaCores > 0 {
			limits = append(limits, "a quota of "+strconv.FormatFloat(m.QuotaCores, 'f', -1, 64))
		}
		parts[0] += fmt.Sprintf(", of which %s usable (%s)", strconv.FormatFloat(m.UsableCores, 'f', -1, 64), strings.Join(limits, ", "))
	}
	if m.ThreadsPerCore > 0 {
		parts = append(parts, plural(m.ThreadsPerCore, "thread")+" per core")
	}
	if m.NUMANodes > 0 {
		parts = append(parts, plural(m.NUMANodes, "NUMA node"))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func memoryLine(bytes uint64) string {
	if bytes == 0 {
		return orUnknown("")
	}
	return binarySize(bytes)
}

// binarySize prints bytes in the largest unit that keeps a whole number before
// the point.
func binarySize(bytes uint64) string {
	size, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	text := strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0")
	return text + " " + units[unit]
}

func frequencyLine(f machine.Frequency) string {
	var parts []string
	if f.MeasuredMHz > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MHz measured", f.MeasuredMHz))
	}
	if f.ClaimedMHz > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MHz claimed", f.ClaimedMHz))
	}
	return orUnknown(strings.Join(parts, ", "))
}

func cachesLine(caches []machine.Cache) string {
	var parts []string
	for _, c := range caches {
		text := fmt.Sprintf("L%d", c.Level)
		if c.Type == "data" || c.Type == "instruction" {
			text += c.Type[:1]
		}
		text += " " + binarySize(c.SizeBytes)
		if c.SharedBy > 1 {
			text += fmt.Sprintf(" (shared by %d)", c.SharedBy)
		}
		parts = append(parts, text)
	}
	return orUnknown(strings.Join(parts, ", "))
}

func featuresLine(m machine.Machine) string {
	if m.CPU.Features == nil {
		return orUnknown("")
	}
	var missing []string
	for _, f := range machine.FeatureNames(m.Arch) {
		if !slices.Contains(m.CPU.Features, f) {
			missing = append(missing, f)
		}
	}
	text := strings.Join(m.CPU.Features, " ")
	if len(missing) > 0 {
		text = joinNonEmpty("; ", text, "without "+strings.Join(missing, " "))
	}
	return text
}

func underLine(m machine.Machine) string {
	hypervisor, container := m.Hypervisor, "container "+orUnknown(m.Container)
	switch hypervisor {
	case "":
		hypervisor = "hypervisor " + orUnknown("")
	case "none":
		hypervisor = "bare metal"
	}
	if m.Container == "none" {
		container = "no container"
	}
	return hypervisor + ", " + container
}

func joinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

func orUnknown(s string) string { return cmp.Or(s, "unknown") }
