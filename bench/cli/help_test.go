package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// TestHelpWidth holds the help of every command to the width of the terminal,
// except for commands to copy.
func TestHelpWidth(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 60, 80, 100} {
		root := Program{Version: "devel"}.newRoot()
		for _, cmd := range slices.Concat(root.Commands(), []*cobra.Command{root}) {
			var out strings.Builder
			writeHelp(&out, cmd, width)
			for line := range strings.Lines(out.String()) {
				if n := text.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d columns: %d in %s", cmd.Name(), width, n, line)
				}
			}
			if got, want := strings.Fields(out.String()), strings.Fields(cmd.Long); !containsAll(got, want) {
				t.Errorf("%s at %d columns lacks words of its text", cmd.Name(), width)
			}
		}
	}
}

func containsAll(list, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(list, w) })
}

func TestReflow(t *testing.T) {
	t.Parallel()
	const about = `Loads URL over connections
and prints what wrk would.

Differences from wrk:
  - There are no Lua scripts.
  - A server that refuses
    connections counts once.

  code  what the code means
  name: example  # a long comment
    uri: /hello

The end.`
	const narrow = `Loads URL over
connections and
prints what wrk
would.

Differences from wrk:
  - There are no Lua
    scripts.
  - A server that
    refuses
    connections
    counts once.

  code
        what the code
        means
  # a long comment
  name: example
    uri: /hello

The end.`
	if got := reflow(about, 21); got != narrow {
		t.Errorf("at 21 columns:\n%s", got)
	}
	if got := reflow(about, 80); got != about {
		t.Errorf("at 80 columns:\n%s", got)
	}
}
