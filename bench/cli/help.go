package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench/report"
	"armrepro/embed"
	"armrepro/proxycheck/process"
)

// headingKey is the annotation of a flag that names its group in the help.
const headingKey = "heading"

// group adds the flags that add defines to a command, under a heading in its
// help.
func group(cmd *cobra.Command, heading string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	set.SortFlags = false
	add(set)
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(set)
	set.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{headingKey: {heading}}
		if v, ok := f.Value.(*value[string]); ok && v.choices != nil {
			complete := cobra.FixedCompletions(v.choices, cobra.ShellCompDirectiveNoFileComp)
			if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // A flag is defined twice: a mistake in this package.
			}
		}
	})
}

// printHelp prints a command's help as wide as the terminal and the reader's eye
// allow.
func printHelp(cmd *cobra.Command, _ []string) {
	const mostReadable = 100
	w := cmd.OutOrStdout()
	writeHelp(w, cmd, min(cmp.Or(terminalWidth(w), mostReadable), mostReadable))
}

// writeHelp prints what a command does, its commands, and its flags in groups.
func writeHelp(w io.Writer, cmd *cobra.Command, width int) {
	fmt.Fprintln(w, reflow(cmd.Long, width))
	if cmd.IsAdditionalHelpTopicCommand() {
		return
	}
	fmt.Fprintf(w, "\nUsage: %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
				use := strings.ReplaceAll(c.Use, " [flags]", "")
				printColumns(w, "  "+use, c.Short, 20, width)
			}
		}
	}
	printFlags(w, cmd.Flags(), width)
	if !cmd.HasParent() {
		fmt.Fprint(w, reflow(rootMore, width))
	}
}

// reflow fits a text that is wider than width into it: paragraphs and list items
// are wrapped, tables are set anew, and the comments of an example go above their
// lines.
func reflow(s string, width int) string {
	if text.LongestLineLen(s) <= width {
		return s
	}
	const item, code = "  - ", 22
	indented := func(line string) bool { return line == "" || strings.HasPrefix(line, " ") }
	lines := []string{""}
	for line := range strings.SplitSeq(s, "\n") {
		last := &lines[len(lines)-1]
		if !indented(line) && !indented(*last) || strings.HasPrefix(line, "    ") && strings.HasPrefix(*last, item) {
			*last += " " + strings.TrimSpace(line)
		} else {
			lines = append(lines, line)
		}
	}
	var out strings.Builder
	for _, line := range lines[1:] {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		example, comment, commented := strings.Cut(line, "  # ")
		name, about, row := strings.Cut(line[len(indent):], "  ")
		switch rest, listed := strings.CutPrefix(line, item); {
		case listed:
			hang(&out, item, "    ", rest, width)
		case commented:
			hang(&out, indent+"# ", indent+"# ", comment, width)
			fmt.Fprintln(&out, strings.TrimRight(example, " "))
		case row:
			printColumns(&out, indent+name, strings.TrimLeft(about, " "), code, width)
		case indent == "":
			hang(&out, "", "", line, width)
		default:
			fmt.Fprintln(&out, line)
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// hang prints s wrapped, with first before its first line and next before the
// others.
func hang(w io.Writer, first, next, s string, width int) {
	for line := range strings.SplitSeq(text.WrapSoft(s, width-len(first)), "\n") {
		fmt.Fprintln(w, strings.TrimRight(first+line, " "))
		first = next
	}
}

// printColumns prints a name and, beside it or on a narrow terminal below it,
// what it means.
func printColumns(w io.Writer, name, usage string, column, width int) {
	const narrow = 70
	if width < narrow {
		column = 8
	}
	if width < narrow || utf8.RuneCountInString(name) >= column {
		fmt.Fprintln(w, name)
		name = ""
	}
	hang(w, text.Pad(name, column, ' '), strings.Repeat(" ", column), usage, width)
}

// printFlags prints a line for each flag, under the headings of their groups.
func printFlags(w io.Writer, flags *pflag.FlagSet, width int) {
	heading := ""
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		next := "Other flags"
		if of := f.Annotations[headingKey]; of != nil {
			next = of[0]
		}
		if next != heading {
			heading = next
			fmt.Fprintf(w, "\n%s:\n", heading)
		}
		names, usage := describeFlag(f)
		printColumns(w, names, usage, 30, width)
	})
}

// describeFlag returns a flag as a user types it, and its meaning. The word for
// its value is the backquoted beginning of its usage, otherwise its type.
func describeFlag(f *pflag.Flag) (names, usage string) {
	value, usage := f.Value.Type(), f.Usage
	if rest, ok := strings.CutPrefix(usage, "`"); ok {
		value, usage, _ = strings.Cut(rest, "` ")
	}
	names = "      --" + f.Name
	if f.Shorthand != "" {
		names = "  -" + f.Shorthand + ", --" + f.Name
	}
	if value != "bool" {
		names += " " + value
	}
	switch f.DefValue {
	case "", "false", "[]", "0", "0s", "-1":
	default:
		usage += " (default " + strings.ReplaceAll(strings.Trim(f.DefValue, "[]"), " ", ",") + ")"
	}
	return names, usage
}

// flagError says what is wrong with a flag, and suggests similar ones.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &usageError{text: fmt.Sprintf("--%s: %v", bad.GetFlag().Name, bad.Unwrap()), hint: process.Hint(bad.Unwrap())}
	}
	usage := &usageError{text: fmt.Sprintf("%s: %v", cmd.Name(), err)}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage
	}
	if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() == "" {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				flags = append(flags, "--"+f.Name)
			}
		})
		usage.hint = didYouMean(similar("--"+name, flags)...)
	} else if cmd.Name() == "load" && name == "s" {
		usage.hint = noScripts
	}
	return usage
}

// similar lists the words that resemble one, by cobra's measure for commands.
func similar(word string, words []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, w := range words {
		all.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(word)
}

// didYouMean is the hint that suggests words.
func didYouMean(words ...string) string {
	if len(words) == 0 {
		return ""
	}
	return "did you mean " + report.Or(words) + "?"
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "print help for armrepro or a command",
		Long:  "Prints help for armrepro or a command.",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err == nil && len(rest) > 0 && about != cmd.Root():
				return usagef("help takes one command, not also %q", rest[0])
			case err != nil || len(rest) > 0:
				return unknownCommand(cmd.Root(), args[len(args)-len(rest):][0])
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// describeCompletion words cobra's command like the others.
func describeCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "print a completion script for bash, zsh, fish or powershell"
			c.Use = "completion SHELL"
			c.Args = arguments(1, 1, "SHELL")
			c.SuggestionsMinimumDistance = 2
			c.RunE = func(cmd *cobra.Command, args []string) error {
				return &usageError{
					text: fmt.Sprintf("unknown shell %q; use bash, zsh, fish or powershell", args[0]),
					hint: didYouMean(cmd.SuggestionsFor(args[0])...),
				}
			}
		}
	}
}

func newVersion(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Prints the versions of armrepro and of the Go and etcd in it.",
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine(version))
			return err
		},
	}
}

func versionLine(version string) string {
	return fmt.Sprintf("armrepro %s %s/%s %s etcd v%s\n",
		version, runtime.GOOS, runtime.GOARCH, runtime.Version(), embed.Version)
}
