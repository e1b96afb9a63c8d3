package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench/machine"
	"armrepro/bench/report"
)

func newMachine() *cobra.Command {
	root, output, explain := "/", "text", false
	cmd := &cobra.Command{
		Use:   "machine [flags]",
		Short: "identify this machine",
		Long:  machineAbout,
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			out := cmd.OutOrStdout()
			return report.WriteMachine(out, m, evidence, terminalWidth(out))
		},
	}
	group(cmd, "Flags", func(fs *pflag.FlagSet) {
		fs.Var(filled(&root, "DIR"), "root", "read proc, sys, etc and run in this folder")
		addTextOrJSON(fs, &output)
		fs.BoolVar(&explain, "explain", false, "print the evidence for each line")
	})
	return cmd
}

// detect describes the machine that the tree at dir was recorded on. Links in a
// recorded tree cannot lead out of it.
func detect(dir string) (machine.Machine, []machine.Evidence, error) {
	if filepath.Clean(dir) == "/" {
		m, evidence := machine.Detect(os.DirFS("/"), machine.LiveFacts(true))
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
	m, evidence := machine.Detect(tree.FS(), nil)
	return m, evidence, nil
}
