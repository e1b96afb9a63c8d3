package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench"
	"armrepro/bench/experiment"
	"armrepro/bench/fitness"
)

func newCheck(tool bench.Tool) *cobra.Command {
	o := newRunOptions(tool)
	output := "text"
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "check machine, ports, gateway and routes, without load",
		Long:  checkAbout + checkList(),
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			o.Logger = o.logs.logger(cmd.ErrOrStderr())
			findings, err := experiment.Check(cmd.Context(), o.Config)
			err = o.explain(cmd.Context(), err)
			switch {
			case findings == nil || is[*signalError](err):
				return err
			case output == "json":
				return errors.Join(err, writeJSON(cmd.OutOrStdout(), findings))
			}
			return errors.Join(err, writeFindings(cmd.OutOrStdout(), findings))
		},
	}
	o.addGateway(cmd)
	group(cmd, "Gateway", o.addScenario)
	group(cmd, "Output", func(fs *pflag.FlagSet) {
		addTextOrJSON(fs, &output)
		o.logs.add(fs)
	})
	o.addPorts(cmd)
	return cmd
}

// addTextOrJSON adds the output flag of a command that prints no result.
func addTextOrJSON(fs *pflag.FlagSet, output *string) {
	fs.VarP(newChoice(output, "output format", "text", "json"), "output", "o", "output format: text or json")
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// checkList lists the checks of the machine, for the help.
func checkList() string {
	var b strings.Builder
	b.WriteString("\n\nIt checks the machine as run does before, during and after the load. Each finding is a\nwarning with one of these codes:\n")
	for _, k := range fitness.FindingKinds {
		fmt.Fprintf(&b, "  %-19s %s\n", k.Code, k.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

// writeFindings prints one line for each thing that was checked.
func writeFindings(w io.Writer, f *experiment.Findings) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	m := f.Machine
	line("machine", "%s, %s, cores: %d, %.1f GiB", cmp.Or(m.CPU.Product, "unknown CPU"), cmp.Or(m.CPU.CoreName(), "unknown core"), m.Cores, float64(m.MemoryBytes)/(1<<30))
	switch {
	case f.Etcd.Embedded:
		line("etcd", "%s, embedded", f.Etcd.Version)
	case f.Etcd.Version != "":
		line("etcd", "%s", f.Etcd.Version)
	case f.Gateway.Kind == experiment.Attach:
		line("etcd", "the gateway's own (not checked)")
	}
	switch {
	case f.Gateway.Kind == "":
		line("gateway", "not running")
	case f.Gateway.Workers == nil:
		line("gateway", "%s %s (%s), workers not counted", f.Gateway.Name, f.Gateway.Version, f.Gateway.Kind)
	default:
		line("gateway", "%s %s (%s), workers: %d", f.Gateway.Name, f.Gateway.Version, f.Gateway.Kind, *f.Gateway.Workers)
	}
	if o := f.Gateway.OpenResty; o != nil {
		line("OpenResty", "%s, %s", o.Version, o.Path)
	}
	if u := f.Tools.Upstream; u != nil {
		line("upstream", "%s %s, %s", u.Name, u.Version, u.Path)
	}
	for _, in := range f.Installs {
		line("installed", "APISIX %s in %s", cmp.Or(in.Version, "of unknown version"), in.Home)
	}
	if p := f.Pins; p != nil {
		line("pinned", "gateway on CPU %s, upstream on %s, load on %s", cmp.Or(p.Gateway, "any"), p.Upstream, p.Load)
	}
	for _, r := range f.Routes {
		line("route", "%s is live", r)
	}
	line("checks", "%d done: %s", len(f.Checks), strings.Join(f.Checks, " "))
	for _, u := range f.Unchecked {
		line("not checked", "%s: %s", u.Code, u.Why)
	}
	for _, warning := range f.Warnings {
		line("warning", "%s: %s", warning.Code, warning.Text)
		if warning.Hint != "" {
			line("", "%s", warning.Hint)
		}
	}
	return t.Flush()
}
